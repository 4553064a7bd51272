"""Teacher forcing: given tokens go through the same loop, and what the model thought of them is recorded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from zoomr.compat import check_attention
from zoomr.errors import UserError
from zoomr.policies.base import Policy
from zoomr.prompts import Prompt, as_prompts, token_ids
from zoomr.results import Usage
from zoomr.rows import Request
from zoomr.runner import Decoding, Mode, Runner, attending, serve
from zoomr.summaries.segments import boundary_table, delimiter_ids
from zoomr.trace import Trace


@dataclass(frozen=True)
class Forced:
    """A given continuation under a policy.

    Attributes
    ----------
    prompt : int
        Index of the prompt.
    log_probs : (n,) float32
        Log-probability of each given token.
    top : (n,) int64
        The token that greedy decoding would have chosen in its place.
    logits : (n, V) float32 or None
        On request.
    stats : Usage
    """

    prompt: int
    log_probs: Tensor
    top: Tensor
    logits: Tensor | None
    stats: Usage


class Forcing:
    """Gives each row its given tokens, and notes their log-probabilities.

    Parameters
    ----------
    targets : list of list of int
        A continuation for each prompt.
    keep_logits : bool
    """

    def __init__(self, targets: list[list[int]], keep_logits: bool = False):
        self.targets, self.keep_logits = targets, keep_logits
        self.log_probs: list[list[Tensor]] = [[] for _ in targets]
        self.top: list[list[Tensor]] = [[] for _ in targets]
        self.logits: list[list[Tensor]] = [[] for _ in targets]
        self._prompt_of: dict[int, int] = {}

    def admit(self, row: int, request: Request) -> None:
        """See `Chooser.admit`."""
        self._prompt_of[row] = request.prompt

    def move(self, source: int, target: int) -> None:
        """See `Chooser.move`."""
        self._prompt_of[target] = self._prompt_of[source]

    def __call__(self, logits: Tensor, rows: list[int], drawn: list[int]) -> list[int]:
        """See `Chooser.__call__`."""
        prompts = [self._prompt_of[row] for row in rows]
        tokens = [self.targets[prompt][number] for prompt, number in zip(prompts, drawn, strict=True)]
        index = torch.tensor(tokens, device=logits.device)[:, None]
        log_probs = torch.log_softmax(logits.float(), dim=-1).gather(1, index)[:, 0].cpu()
        top = logits.argmax(-1).cpu()
        for line, prompt in enumerate(prompts):
            self.log_probs[prompt].append(log_probs[line])
            self.top[prompt].append(top[line])
            if self.keep_logits:
                self.logits[prompt].append(logits[line].float().cpu())
        return tokens


def teacher_forced(
    model: Any,
    tokenizer: Any,
    prompts: Sequence[Prompt],
    continuations: Sequence[Sequence[int]],
    *,
    policy: Policy,
    batch_size: int = 8,
    mode: Mode = "gather",
    boundaries: Iterable[int] | None = None,
    trace: Trace | None = None,
    keep_logits: bool = False,
) -> list[Forced]:
    """Feed given tokens through a policy's decoding loop, one by one, and report their log-probabilities.

    Parameters
    ----------
    model, tokenizer, prompts, policy, batch_size, mode, boundaries, trace
        See `generate`.
    continuations : sequence of token-id lists
        One a prompt, not empty.
    keep_logits : bool
        Keep the logits of every position.

    Returns
    -------
    list of Forced
        One a prompt, in order.
    """
    prompts = as_prompts(prompts)
    if len(continuations) != len(prompts) or not all(continuations):
        raise UserError("continuations: one is needed for every prompt, of at least one token")
    decoding = Decoding(
        policy=policy,
        boundaries=frozenset(boundary_table(tokenizer) if boundaries is None else boundaries),
        stop_ids=frozenset(),
        delimiters=delimiter_ids(tokenizer),
        mode=mode,
        trace=trace,
    )
    targets = [list(continuation) for continuation in continuations]
    forcing = Forcing(targets, keep_logits)
    requests = [
        Request(index, 0, index, token_ids(tokenizer, prompt), len(targets[index]), is_last_sample=True)
        for index, prompt in enumerate(prompts)
    ]
    for request in requests:
        check_attention(model.config, len(request.token_ids) + request.limit)
        policy.check(len(request.token_ids))
    size, stats = max(1, min(batch_size, len(requests))), {}
    with attending(model):
        for row, _ in serve(Runner(model, decoding, forcing, size), requests):
            stats[row.request.prompt] = row.usage()
    return [
        Forced(
            prompt=index,
            log_probs=torch.stack(forcing.log_probs[index]),
            top=torch.stack(forcing.top[index]),
            logits=torch.stack(forcing.logits[index]) if keep_logits else None,
            stats=stats[index],
        )
        for index in range(len(targets))
    ]
