"""Text of a fixed form, given to the decoder token by token: memory and speed are compared at equal lengths."""

import random
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Form:
    """Tokens of the prompt, of a paragraph, of a summary with its delimiters, and between boundaries."""

    prompt: int
    paragraph: int
    summary: int
    gap: int


class Given:
    """Gives every row its tokens in place of sampling them; the logits are computed and left alone."""

    def __init__(self, rows: list[list[int]]) -> None:
        self.targets = rows
        self._prompt_of: dict[int, int] = {}

    def admit(self, row: int, request: Any) -> None:
        """A request starts at ``row``."""
        self._prompt_of[row] = request.prompt

    def move(self, source: int, target: int) -> None:
        """The row at ``source`` continues at ``target``."""
        self._prompt_of[target] = self._prompt_of[source]

    def __call__(self, logits: Any, rows: list[int], drawn: list[int]) -> list[int]:
        """The next given token of each row."""
        return [self.targets[self._prompt_of[row]][number] for row, number in zip(rows, drawn, strict=True)]


def write_row(
    form: Form, length: int, words: list[int], boundary: int, delimiters: tuple[int, int], seed: int
) -> tuple[list[int], list[int]]:
    """Write one row.

    Parameters
    ----------
    form : Form
        Lengths of its parts.
    length : int
        Generated tokens.
    words : list of int
        Token ids without a meaning to the decoder.
    boundary : int
        A token that is a semantic boundary.
    delimiters : tuple of int
        The ids that begin and end a summary.
    seed : int
        Seed of the row's words.

    Returns
    -------
    tuple of two lists of int
        The prompt and the continuation: paragraphs with a boundary every ``gap`` tokens, each followed by its summary.
    """
    rng = random.Random(seed)
    continuation: list[int] = []
    while len(continuation) < length:
        paragraph = [boundary if n % form.gap == form.gap - 1 else rng.choice(words) for n in range(form.paragraph)]
        summary = [rng.choice(words) for _ in range(form.summary - 2)]
        continuation += [*paragraph, delimiters[0], *summary, delimiters[1]]
    return [rng.choice(words) for _ in range(form.prompt)], continuation[:length]


def analytic_tokens(form: Form, length: int, policy: dict[str, Any]) -> float:
    """KV entries that the paper's memory model expects of a row at its end (section 3.5).

    Parameters
    ----------
    form : Form
        Lengths of the parts.
    length : int
        Generated tokens.
    policy : dict
        Settings of the policy; with ``c`` and ``window`` it is ZoomR's.

    Returns
    -------
    float
        N_p + N_g for a full cache; N_p + c L_R + (N - c) L_S + N_w for ZoomR, every one of the N summaries a candidate.
    """
    if "c" not in policy:
        return form.prompt + length
    segments = length / (form.paragraph + form.summary)
    zoomed = min(policy["c"], segments)
    held = form.prompt + zoomed * form.paragraph + (segments - zoomed) * form.summary + policy["window"]
    return min(held, form.prompt + length)
