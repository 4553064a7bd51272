"""What dresses an answer without changing it: fonts, spaces, delimiters, markdown, Unicode, phrases around it."""

import re

from eval.grading.brackets import closes_at_end

_UNICODE = {
    "−": "-",
    "–": "-",
    "×": "\\times ",
    "·": "\\cdot ",
    "⋅": "\\cdot ",
    "÷": "/",
    "π": "\\pi ",
    "∞": "\\infty ",
    "∪": "\\cup ",
    "∩": "\\cap ",
    "≤": "\\le ",
    "≥": "\\ge ",
    "≠": "\\ne ",
    "±": "\\pm ",
    "∓": "\\mp ",
    "∅": "\\emptyset ",
    "½": "\\frac{1}{2}",
    "¼": "\\frac{1}{4}",
    "¾": "\\frac{3}{4}",
    "²": "^2",
    "³": "^3",
    "°": "^\\circ ",
    "ℝ": "\\mathbb{R}",
    "∈": "\\in ",
    "≡": "\\equiv ",
    "≈": "\\approx ",
    "θ": "\\theta ",
    "\u00a0": " ",
    "\u202f": " ",
    "\u2009": " ",
    "“": "",
    "”": "",
    "‘": "",
    "’": "'",
    "€": "",
    "£": "",
    "¥": "",
    "¢": " cents",
}
_CONTENT = r"\s*\{((?:[^{}]|\{[^{}]*\})*)\}"
_TEXT = re.compile(
    r"(\w|[})])?\\(?:text|textrm|textbf|textit|textsf|mathrm|mbox|hbox|operatorname\*?)" + _CONTENT + r"(?=(.?))"
)
_FONT = re.compile(r"\\(?:mathbf|mathit|mathsf|mathcal|boldsymbol|bm|underline|boxed|fbox|Large|large|emph)" + _CONTENT)
_COLOR = re.compile(r"\\(?:text)?color\s*\{\w*\}|\\[hv]?phantom\{[^{}]*\}")
_SWITCH = re.compile(
    r"\\(?:bf|rm|it|sf|displaystyle|textstyle|limits|large|Large|huge|Huge|normalsize|bfseries)(?![A-Za-z])"
)
_SIZE = re.compile(r"\\(?:left|right|middle)(?![A-Za-z])\.?|\\[bB]igg?[lrm]?(?![A-Za-z])")
_SPACE = re.compile(r"(?<!\\)\\(?:[,;:> ]|q?quad(?![A-Za-z])|space(?![A-Za-z])|[hv]space\*?\{[^{}]*\})|~|\s")
_SPELLINGS = (
    (re.compile(r"\\[dtc]frac(?![A-Za-z])"), r"\\frac"),
    (re.compile(r"\\(?:geqslant|geq)(?![A-Za-z])|>="), r"\\ge "),
    (re.compile(r"\\(?:leqslant|leq)(?![A-Za-z])|<="), r"\\le "),
    (re.compile(r"\\neq(?![A-Za-z])|\\not\s*=|!="), r"\\ne "),
    (re.compile(r"\\gt(?![A-Za-z])"), ">"),
    (re.compile(r"\\lt(?![A-Za-z])"), "<"),
    (re.compile(r"\\l(?:brace|\{)(?![A-Za-z])"), r"\\{"),
    (re.compile(r"\\rbrace(?![A-Za-z])"), r"\\}"),
    (re.compile(r"\\langle(?![A-Za-z])"), "("),
    (re.compile(r"\\rangle(?![A-Za-z])"), ")"),
    (re.compile(r"\\[lr][vV]ert(?![A-Za-z])|\\[lr]?vert(?![A-Za-z])"), "|"),
    (re.compile(r"\\varnothing(?![A-Za-z])|\\\{ *\\\}"), r"\\emptyset"),
    (re.compile(r"\{ ?(\w+) ?\\choose ?(\w+) ?\}|\\[dt]binom *\{(\w+)\} *\{(\w+)\}"), r"\\binom{\1\3}{\2\4}"),
    (re.compile(r"\\colon(?![A-Za-z])"), ":"),
    (re.compile(r"\\(?:dots|ldots|cdots)c?(?![A-Za-z])"), r"\\dots"),
    (re.compile(r"\\\\\[\d*\w*\]"), r"\\\\"),
    (re.compile(r"\{([:,])\}"), r"\1"),
    (re.compile(r"√\(([^()]*)\)|√(\d+|\w)"), r"\\sqrt{\1\2}"),
    (re.compile(r"∛(\d+|\w)"), r"\\sqrt[3]{\1}"),
    (re.compile(r"\\sqrt *(\[\d+\])? *(\d+|[a-z](?![a-z]))(?![\d}])"), r"\\sqrt\1{\2}"),
    (re.compile(r"\^ *\{? *(?:\\circ|\\degree|o) *\}?(?![A-Za-z])|\\degree(?![A-Za-z])"), " degrees "),
    (re.compile(r"([_^]) *\{ *(\w) *\}"), r"\1\2"),
    (re.compile(r"(?<![\w.\]}])\{(\w)\}(?=[\^_/])"), r"\1"),
)
_PHRASE = re.compile(
    r"(?:.*\b)?(?:(?:final|correct|right|best) )*(?:answer|result)s?(?:(?: is| are)\s*:?|\s*[:=])\s*(?=\S)",
    re.IGNORECASE,
)
_MEMBER_OF = re.compile(r"^\\?[A-Za-z]+(?: ?_ ?\w+)? ?\\in(?![a-z]) ?")
_LEADING = re.compile(
    r"^(?:about|approximately|exactly|remainder|total|value|area|\\approx) (?=[\d\\$-])", re.IGNORECASE
)
_EMPTY = re.compile(
    r"there (?:are|is) no .*|no (?:real |such )?(?:solutions?|roots?|values?)|(?:the )?empty set", re.IGNORECASE
)
_REALS = re.compile(r"\\mathbb *\{?R\}?|\\Reals?|(?:the )?(?:set of )?all reals?(?: numbers?)?", re.IGNORECASE)


def undress(text: str) -> str:
    """Write an answer in its plain form, so that two answers differ only where their meaning may.

    Parameters
    ----------
    text : str
        An expression or a few words, with or without math delimiters.

    Returns
    -------
    str
        The same without delimiters, spacing, sizing and font commands, markdown, currency signs, outer braces, closing
        punctuation and a leading "the answer is"; degrees are written as the unit they are.
    """
    for sign, spelled in _UNICODE.items():
        text = text.replace(sign, spelled)
    text = re.sub(r"(?<!\\)\\[()\[\]]|US\\?\$|\\?\$|\*\*|`|\\!\s*|\bUSD\b", "", text)
    text = re.sub(r"\\?%|\bper cent\b|\b(?:percentage|pct)\b", " percent", text)
    text = re.sub(
        r"\\frac\s*\{\s*\\(?:text|mathrm)\{([^{}]*)\}\s*\}\s*\{\s*\\(?:text|mathrm)\{([^{}]*)\}\s*\}", r" \1/\2", text
    )
    text = _SPACE.sub(" ", _SWITCH.sub(" ", _SIZE.sub("", _COLOR.sub("", text))))
    for _ in range(3):
        text = _FONT.sub(_bare, _TEXT.sub(_spaced, text))
    for pattern, spelled in _SPELLINGS:
        text = pattern.sub(spelled, text)
    text = _outside(_MEMBER_OF.sub("", _outside(re.sub(r"\s+", " ", text))))
    text = _outside(_PHRASE.sub("", text, count=1)) if _PHRASE.match(text) else text
    text = _LEADING.sub("", text)
    if _EMPTY.fullmatch(text):
        return "\\emptyset"
    return (
        "(-\\infty, \\infty)"
        if _REALS.fullmatch(text)
        else {"infinity": "\\infty", "+\\infty": "\\infty"}.get(text, text)
    )


def _spaced(match: re.Match[str]) -> str:
    """Words of a text command keep their distance from what stands before and after them."""
    before, words, after = match[1] or "", match[2], match[3]
    apart = words[:1].isalpha()
    return (
        before
        + (" " if apart and before else "")
        + words
        + (" " if words[-1:].isalpha() and (after.isalnum() or after == "\\") else "")
    )


def _bare(match: re.Match[str]) -> str:
    """Content of a font command; in braces where an index or exponent may follow it."""
    return match[1] if len(match[1].strip()) == 1 else f"{{{match[1]}}}"


def _outside(text: str) -> str:
    """Strip what wraps the whole answer: quotes, stars, braces, closing punctuation."""
    previous = ""
    while text != previous:
        previous = text
        text = text.strip(' \t\n"').rstrip(".,;").removesuffix("\\").strip()
        for pair in ("''", "**", "{}"):
            if len(text) > 2 and text[0] + text[-1] == pair and (pair != "{}" or closes_at_end(text)):
                text = text[1:-1]
        if (
            len(text) > 2
            and text[0] == "("
            and text[-1] == ")"
            and closes_at_end(text)
            and re.fullmatch(r"[^,;A-Za-z]*", text)
        ):
            text = text[1:-1]
    return text
