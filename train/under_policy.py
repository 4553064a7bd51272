"""Fine-tuning under what a policy would leave of the cache: our extension, off unless `sft.policy` names one.

The paper trains with full attention. Here each step takes two forwards: the first sees everything and gives the policy
the queries and keys that it would see at every boundary of the given text; in the second, which is learnt from, a token
attends to what the policy chose. Evaluation stays with full attention.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from train.preflight import IGNORED
from zoomr.attention import attend_many
from zoomr.compat import sdpa_attention_forward
from zoomr.errors import UserError
from zoomr.policies import Needs, Recalling, RefreshView
from zoomr.rows import Request, Row, derived_seed
from zoomr.summaries.segments import boundary_table, delimiter_ids
from zoomr.summaries.votes import label_positions, mean_key

TOGETHER = 64  # refreshes of a row that are worked out at once


class _Sight:
    """Attends to everything before, and keeps each layer's queries (B, Hq, T, d) and keys (B, H, T, d)."""

    def __init__(self) -> None:
        self.queries: list[Tensor] = []
        self.keys: list[Tensor] = []
        self.scaling = 1.0

    def attend(
        self, module: torch.nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float
    ) -> Tensor:
        """See `Observer.attend`."""
        self.queries.append(query)
        self.keys.append(key)
        self.scaling = scaling
        return sdpa_attention_forward(module, query, key, value, mask, scaling=scaling)[0]


class _Chosen:
    """Attends to what is `visible` (B, T, T)."""

    def __init__(self, visible: Tensor):
        self.mask = visible[:, None]

    def attend(
        self, module: torch.nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float
    ) -> Tensor:
        """See `Observer.attend`."""
        return attend_many(query, key, value, self.mask, scaling)


class UnderPolicy:
    """A hook that lets a model in training attend to what a policy chooses.

    Parameters
    ----------
    policy : Recalling
        Without `vote_span` and `pre_rope`.
    tokenizer
        With the summaries' delimiters.
    share : float
        Of the rows, drawn at each step; the others see everything, so that a full cache stays as good as it was.

    Raises
    ------
    UserError
        For a policy that evicts, or with an option that is not supported here.
    """

    def __init__(self, policy: Recalling, tokenizer: Any, share: float = 1.0):
        if not policy.recalls or policy.vote_span or policy.pre_rope:
            raise UserError(
                f"sft.policy={type(policy).__name__}: only policies that recall, with vote_span and pre_rope off."
            )
        self.policy = policy
        self.share = share
        self.boundaries = boundary_table(tokenizer)
        self.delimiters = delimiter_ids(tokenizer)

    def install(self, model: Any) -> None:
        """Hook onto a transformers causal language model."""
        model.set_attn_implementation("zoomr")
        model.register_forward_pre_hook(self, with_kwargs=True)

    def __call__(self, model: Any, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]] | None:
        """Add to a training forward of `input_ids` and `labels` (B, T) what each token attends to."""
        if not model.training or "zoomr" in kwargs:
            return None
        ids, labels = kwargs["input_ids"], kwargs["labels"]
        drawn = (torch.rand(len(ids)) < self.share).nonzero()[:, 0].tolist()
        if not drawn:
            return None
        sight = _Sight()
        with torch.no_grad():
            model(input_ids=ids[drawn], use_cache=False, zoomr=sight)
        prompts = (labels != IGNORED).int().argmax(dim=1).tolist()
        visible = all_before(ids.shape[1], ids.device).repeat(len(ids), 1, 1)
        for index, row in enumerate(drawn):
            visible[row] = self.visible(sight, index, ids[row].tolist(), prompts[row])
        return args, kwargs | {"zoomr": _Chosen(visible)}

    def visible(self, sight: _Sight, index: int, ids: list[int], prompt: int) -> Tensor:
        """What each token of a row attends to, (T, T) bool: all before it until the first refresh."""
        row, due = self._follow(ids, prompt)
        length, device = len(ids), sight.keys[0].device
        seen = all_before(length, device)
        if not due:
            return seen
        last = torch.tensor([position for position, _ in due], device=device)
        queries = torch.stack([layer[index] for layer in sight.queries])
        keys = torch.stack([layer[index] for layer in sight.keys])
        means = self._means(keys, row)
        blocks = []
        for first in range(0, len(due), TOGETHER):
            view = self._view(queries, keys, means, sight.scaling, row, due[first : first + TOGETHER], first)
            votes = self.policy.vote(view) if Needs.QUERIES in self.policy.needs else None
            blocks.append(self.policy.refresh(view, votes).active)
        active = torch.cat(blocks)
        positions = torch.arange(length, device=device)
        latest = torch.searchsorted(last, positions) - 1  # a boundary token itself attends to the old choice
        chosen = active[latest.clamp(min=0)] | (positions > last[latest.clamp(min=0)][:, None])
        return seen & (chosen | (latest < 0)[:, None])

    def _follow(self, ids: list[int], prompt: int) -> tuple[Row, list[tuple[int, int]]]:
        """The row at its end, and position and finished summaries of each refresh."""
        row = Row.start(Request(0, 0, 0, ids[:prompt], len(ids) - prompt, True), self.delimiters, ids[prompt:])
        due = []
        for row.position in range(prompt, len(ids)):
            row.token = ids[row.position]
            row.feed(self.boundaries)
            if self.policy.due(row):
                due.append((row.position, row.tracker.finished))
                row.since = 0
        return row, due

    def _view(
        self,
        queries: Tensor,
        keys: Tensor,
        means: Tensor,
        scaling: float,
        row: Row,
        due: list[tuple[int, int]],
        number: int,
    ) -> RefreshView:
        """What the policy sees of a row at some of its refreshes; `number` refreshes came before them.

        Queries (L, Hq, T, d), keys (L, H, T, d) and mean keys (L, H, N, d) are those of the whole row.
        """
        device, count = keys.device, len(due)
        last, finished = torch.tensor(due, device=device).unbind(1)
        edges = torch.tensor([row.tracker.edges], device=device)
        summaries = int(finished.max())
        labels = label_positions(edges, keys.shape[2])
        return RefreshView(
            last=last,
            finished=finished,
            starts=edges[:, : 2 * summaries : 2].expand(count, -1),
            labels=labels.clamp(max=2 * summaries + 2).expand(count, -1),  # what comes later is not there yet
            candidates=torch.arange(summaries, device=device) < finished[:, None],
            queries=queries[:, :, last].transpose(1, 2),
            means=means[:, None, :, :summaries].expand(-1, count, -1, -1, -1),
            scaling=scaling,
            seeds=[derived_seed(0, number + place) for place in range(count)],
            prompts=[0] * count,
            keys=lambda: keys[:, None].expand(-1, count, -1, -1, -1),
        )

    def _means(self, keys: Tensor, row: Row) -> Tensor:
        """Mean keys of a row's finished summaries, (L, H, N, d), from all its keys (L, H, T, d)."""
        spans = [row.tracker.key_span(n, self.policy.with_delimiters) for n in range(row.tracker.finished)]
        means = [mean_key(keys[:, :, start:stop]) for start, stop in spans]
        return torch.stack(means, dim=2) if means else keys[:, :, :0]


def all_before(length: int, device: torch.device) -> Tensor:
    """What tokens attend to that see everything, (T, T) bool."""
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()
