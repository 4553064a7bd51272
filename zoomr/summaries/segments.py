"""The segments of a reasoning trace: prompt, paragraphs R_i, summaries S_i, and the tokens that end a sentence.

Everything here is plain Python and per row; tensors are made from `SegmentTracker.edges` only when a refresh is due.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

BEGIN_SUMMARY = "<|begin_of_summary|>"
END_SUMMARY = "<|end_of_summary|>"

SENTENCE_ENDINGS = (".", "!", "?", "...", ":")
PARAGRAPH_BREAKS = ("\n\n",)
MAX_SUMMARY_TOKENS = 64

_tables: WeakKeyDictionary[Any, dict[tuple, frozenset[int]]] = WeakKeyDictionary()


def boundary_table(
    tokenizer: Any, endings: tuple[str, ...] = SENTENCE_ENDINGS, breaks: tuple[str, ...] = PARAGRAPH_BREAKS
) -> frozenset[int]:
    """Token ids that are semantic boundaries (paper, appendix A.3).

    Every id of the vocabulary is decoded once, which may leave some out; it is a boundary when its text, stripped of
    white space, ends with one of `endings`, or when the raw text ends with one of `breaks`. A longer run of newlines
    ends with the paragraph break too.

    Parameters
    ----------
    tokenizer : transformers tokenizer
    endings, breaks : tuple of str

    Returns
    -------
    frozenset of int
        Computed once per tokenizer, vocabulary size and choice of endings.
    """
    key = (len(tokenizer), endings, breaks)
    known = _tables.setdefault(tokenizer, {})
    if key not in known:
        ids = sorted(set(tokenizer.get_vocab().values()))
        texts = tokenizer.batch_decode([[i] for i in ids], clean_up_tokenization_spaces=False)
        known[key] = frozenset(
            i for i, text in zip(ids, texts, strict=True) if text.strip().endswith(endings) or text.endswith(breaks)
        )
    return known[key]


def delimiter_ids(tokenizer: Any) -> tuple[int | None, int | None]:
    """Ids of the two summary delimiters; None for a delimiter that is not one token of this vocabulary."""

    def token_id(token: str) -> int | None:
        found = tokenizer.convert_tokens_to_ids(token)
        return found if found is not None and tokenizer.convert_ids_to_tokens(found) == token else None

    return token_id(BEGIN_SUMMARY), token_id(END_SUMMARY)


@dataclass(slots=True)
class SegmentTracker:
    """Follows the segments of one row, token by token.

    `edges` holds the positions where the segment changes: `[prompt, s_0, e_0, s_1, e_1, ...]`. The number of edges at
    or before a position is therefore its label: 0 for the prompt, 2i + 1 for paragraph i, 2i + 2 for summary i (the
    delimiters belong to the summary).

    A summary that is not closed after `max_summary` inner tokens is closed by force; an end delimiter without a begin
    delimiter, and a second begin delimiter inside a summary, change nothing. All three are counted in `unbalanced`.

    Parameters
    ----------
    prompt : int
        Number of prompt tokens; the first paragraph starts there.
    begin, end : int or None
        Ids of the delimiters.
    max_summary : int
        Inner tokens after which a summary is closed by force.
    """

    prompt: int
    begin: int | None
    end: int | None
    max_summary: int = MAX_SUMMARY_TOKENS
    edges: list[int] = field(init=False)
    inner: list[tuple[int, int]] = field(default_factory=list, init=False)
    unbalanced: int = field(default=0, init=False)
    longest_paragraph: int = field(default=0, init=False)
    is_open: bool = field(default=False, init=False)
    was_forced: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.edges = [self.prompt]

    @property
    def finished(self) -> int:
        """Number of finished summaries, N_t."""
        return len(self.inner)

    def key_span(self, index: int, with_delimiters: bool) -> tuple[int, int]:
        """Positions whose keys make the mean key of finished summary `index`, a half-open range."""
        if with_delimiters:
            return self.edges[2 * index + 1], self.edges[2 * index + 2]
        return self.inner[index]

    def push(self, token: int, position: int) -> bool:
        """Take the next token of the row.

        Parameters
        ----------
        token : int
        position : int
            Absolute position of the token in the row.

        Returns
        -------
        bool
            True when a summary was closed by this token; its key tokens are then `inner[-1]`, a half-open range.
        """
        if not self.is_open:
            if token == self.begin:
                self.longest_paragraph = max(self.longest_paragraph, position - self.edges[-1])
                self.edges.append(position)
                self.is_open, self.was_forced = True, False
            elif token == self.end:
                self.unbalanced += not self.was_forced  # the end of a summary that was closed by force comes late
                self.was_forced = False
            return False
        if token == self.end:
            self._close(position + 1, inner_stop=position)
            return True
        self.unbalanced += token == self.begin
        if position - self.edges[-1] >= self.max_summary:
            self.unbalanced += 1
            self.was_forced = True
            self._close(position + 1, inner_stop=position + 1)
            return True
        return False

    def _close(self, stop: int, inner_stop: int) -> None:
        start = self.edges[-1]
        # an empty summary has no inner tokens: its delimiters are all there is to take a key from
        self.inner.append((start + 1, inner_stop) if inner_stop > start + 1 else (start, stop))
        self.edges.append(stop)
        self.is_open = False

    def at_end(self, length: int) -> tuple[int, int]:
        """Unbalanced delimiters and the longest paragraph of a row that ends here, after `length` tokens."""
        if self.is_open:
            return self.unbalanced + 1, self.longest_paragraph
        return self.unbalanced, max(self.longest_paragraph, length - self.edges[-1])
