"""The form of a long trace, and the tokens that a batch is given to go on with it."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from zoomr.rows import Request
from zoomr.summaries.segments import SegmentTracker

BEGIN, END, BOUNDARY, WORD = 1, 2, 3, 4  # token ids; any model has them, and no tokenizer is asked


@dataclass(frozen=True)
class TraceForm:
    """A trace of equal parts.

    Parameters
    ----------
    prompt, paragraph, summary : int
        Tokens of each; a summary's delimiters included.
    gap : int
        Tokens from one semantic boundary to the next.
    """

    prompt: int
    paragraph: int
    summary: int
    gap: int

    def token(self, position: int, row: int) -> int:
        """The token at a position after the prompt; rows reach their boundaries at different steps."""
        place = (position - self.prompt) % (self.paragraph + self.summary)
        if place == self.paragraph:
            return BEGIN
        if place == self.paragraph + self.summary - 1:
            return END
        return BOUNDARY if (position + 4 * row) % self.gap == 0 else WORD

    def track(self, tracker: SegmentTracker, seen: int, row: int) -> None:
        """Show a row's tracker everything from the prompt's end to the first `seen` tokens."""
        for position in range(self.prompt, seen):
            tracker.push(self.token(position, row), position)


class Given:
    """Gives every row the tokens of the form from position `start` on, whatever the logits say (a `Chooser`)."""

    def __init__(self, form: TraceForm, start: int):
        self.form, self.start = form, start

    def admit(self, row: int, request: Request) -> None:
        """Rows differ by their place alone."""

    def move(self, source: int, target: int) -> None:
        """No row ends."""

    def __call__(self, logits: Tensor, rows: list[int], drawn: list[int]) -> list[int]:
        """The next token of each row; waits for the logits, as choosing from them would."""
        logits.argmax(-1).tolist()
        return [self.form.token(self.start + number, row) for row, number in zip(rows, drawn, strict=True)]
