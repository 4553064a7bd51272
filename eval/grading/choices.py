"""The letter of a multiple choice."""

import re

from eval.grading.dress import undress

_LEAD = re.compile(
    r"^(?:(?:the|my|final|correct|right|best) )*(?:(?:answer|option|choice)s?(?: is)? ?:? ?)?(?:(?:option|choice) ?)?",
    re.IGNORECASE,
)
_LETTER = re.compile(r"(?:[(\[{<] ?([A-Za-z]) ?[)\]}>]|([A-Za-z]))(?:$|(?P<rest>[.:)] ?.*| ?- .*| ?\(.*))")
_BRACKETED = re.compile(r"[(\[{<] ?([A-Za-z]) ?[)\]}>](?P<rest>.*)")
_ANOTHER = re.compile(r"^[.:)]? ?(?:or|and|,|/)\b|\([A-Z]\)")


_MARKED = re.compile(
    r"\(([A-Za-z])\)|\(([A-Z])\) ?[\w\\].*|([A-Z])[.:)] .*|([A-Za-z])\)|(?:[Oo]ption|[Cc]hoice) \(?([A-Za-z])\)?"
)


def marked_letter(text: str) -> str | None:
    """The letter of a plain text that marks it as a choice, by brackets or by "option"; None for a bare letter."""
    match = _MARKED.fullmatch(text)
    return None if match is None else next(letter for letter in match.groups() if letter).upper()


def choice_letter(text: str) -> str | None:
    """Read which choice an answer names.

    Parameters
    ----------
    text : str
        The letter alone, in brackets, in any font or case, after "option" or "the answer is", or before the text of its
        choice.

    Returns
    -------
    str or None
        The letter in upper case; None where there is none, or more than one.
    """
    text = undress(text.strip("'<>` *"))
    found = _LEAD.sub("", text).strip("'*<> ")
    match = _LETTER.fullmatch(found) or _BRACKETED.fullmatch(found)
    if match is None or _ANOTHER.search(match["rest"] or ""):
        return None
    return next(letter for letter in match.groups() if letter).upper()
