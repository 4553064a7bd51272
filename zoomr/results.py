"""What a finished row reports."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Status = Literal["stop", "length", "repetition"]


@dataclass(frozen=True)
class Usage:
    """A row's meter. A token is active at a step when the step's query attends to its KV; the query's own is counted.

    Attributes
    ----------
    prompt_tokens, generated_tokens, seen_tokens : int
        Seen is the prompt and all that was generated: what a full cache would hold at the end.
    active_tokens_mean, active_tokens_peak : float, int
        Over the decoding steps; averaged over heads where heads differ.
    kv_saving : float
        seen_tokens / active_tokens_peak: the full cache's peak over this one's.
    active_by_kind : dict
        Mean active tokens by kind: prompt, window (with all tokens since the last refresh), zoomed, summary,
        conclusion (the end of a shown summary's paragraph), other.
    refreshes, forced_refreshes : int
        A refresh is forced when no boundary came for too long.
    moved_bytes : int
        Copied between host and device by refreshes.
    summaries : int
        Finished summaries.
    balanced : bool
        There is a summary, and every delimiter had its partner.
    unbalanced : int
        Stray, repeated, missing and forced delimiters.
    longest_paragraph : int
        Tokens of the longest stretch without a summary.
    tokens_per_s : float
        Generated tokens over the time the row spent in the batch.
    """

    prompt_tokens: int
    generated_tokens: int
    seen_tokens: int
    active_tokens_mean: float
    active_tokens_peak: int
    kv_saving: float
    active_by_kind: dict[str, float]
    refreshes: int
    forced_refreshes: int
    moved_bytes: int
    summaries: int
    balanced: bool
    unbalanced: int
    longest_paragraph: int
    tokens_per_s: float


@dataclass(frozen=True)
class Generation:
    """One finished sample.

    Attributes
    ----------
    prompt, sample : int
        Index of the prompt, and of the sample for that prompt.
    seed : int
    token_ids : list of int
        Generated tokens, the stop token included.
    text : str
        Decoded with special tokens, so that the summary delimiters are there; without the stop token.
    status : str
        "stop"; "length" at the limit; "repetition" at the limit with a tail that repeats itself.
    stats : Usage
    """

    prompt: int
    sample: int
    seed: int
    token_ids: list[int]
    text: str
    status: Status
    stats: Usage

    def to_dict(self) -> dict[str, Any]:
        """A flat dictionary: these fields and those of the usage."""
        row = asdict(self)
        return row | row.pop("stats")


def repeats(tokens: list[int], tail: int = 256, longest_period: int = 64) -> bool:
    """Whether the last `tail` tokens are one block of at most `longest_period` tokens, over and over."""
    end = tokens[-tail:]
    if len(end) < tail:
        return False
    return any(end[period:] == end[:-period] for period in range(1, longest_period + 1))
