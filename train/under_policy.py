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
from zoomr.attention import NAME, attend
from zoomr.policies import Policy, Site
from zoomr.prefill import PromptObserver
from zoomr.replay import check_replay, visible_under
from zoomr.rotary import Rotary
from zoomr.summaries.segments import boundary_table, delimiter_ids


class _Sight(PromptObserver):
    """Attends to everything before, and keeps each layer's queries and keys."""

    def __init__(self) -> None:
        super().__init__(attention=False, history=0, padding=None)
        self.asked: list[Tensor] = []

    def attend(
        self, module: torch.nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float
    ) -> Tensor:
        """See `Observer.attend`."""
        self.asked.append(query)
        return super().attend(module, query, key, value, mask, scaling)


class _Chosen:
    """Attends to what is `visible` (B, T, T)."""

    def __init__(self, visible: Tensor):
        self.mask = visible[:, None]

    def attend(
        self, module: torch.nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float
    ) -> Tensor:
        """See `Observer.attend`."""
        return attend(query, key, value, self.mask, scaling)


class UnderPolicy:
    """A hook that lets a model in training attend to what a policy chooses.

    Parameters
    ----------
    policy : Policy
        One that chooses for all heads together.
    tokenizer
        With the summaries' delimiters.
    share : float
        Of the rows, drawn at each step; the others see everything, so that a full cache stays as good as it was.

    Raises
    ------
    UserError
        For another policy.
    """

    def __init__(self, policy: Policy, tokenizer: Any, share: float = 1.0):
        check_replay(policy)
        self.policy, self.share = policy, share
        self.boundaries, self.delimiters = boundary_table(tokenizer), delimiter_ids(tokenizer)

    def install(self, model: Any) -> None:
        """Hook onto a transformers causal language model."""
        model.set_attn_implementation(NAME)
        model.register_forward_pre_hook(self, with_kwargs=True)

    def __call__(self, model: Any, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]] | None:
        """Add to a training forward of `input_ids` and `labels` (B, T) what each token attends to."""
        if not model.training or "zoomr" in kwargs:
            return None
        ids, taught = kwargs["input_ids"], kwargs["labels"] != IGNORED
        drawn = (torch.rand(len(ids)) < self.share).nonzero()[:, 0].tolist()
        if not drawn:
            return None
        sight = _Sight()
        with torch.no_grad():
            model(input_ids=ids[drawn], use_cache=False, zoomr=sight)
        site = Site(sight.shape(model), 1, ids.device, Rotary.of(model))
        visible = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool, device=ids.device).tril()
        visible = visible.repeat(len(ids), 1, 1)
        width = ids.shape[1]
        for index, row in enumerate(drawn):
            # what is taught lies between the prompt and the padding
            prompt, stop = int(taught[row].int().argmax()), width - int(taught[row].flip(0).int().argmax())
            visible[row, :stop, :stop] = visible_under(
                self.policy,
                site,
                ids[row, :stop].tolist(),
                prompt,
                self.boundaries,
                self.delimiters,
                [query[index : index + 1] for query in sight.asked],
                [sight.kv[layer][0][index, :, :stop] for layer in sorted(sight.kv)],
                sight.scaling,
            )
        return args, kwargs | {"zoomr": _Chosen(visible)}
