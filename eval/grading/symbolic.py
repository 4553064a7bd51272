"""Equality of expressions through math-verify. It runs in a child process: nothing in here bounds its time."""

import logging
import re
from typing import Any
from zlib import crc32

from eval.grading.prose import is_prose
from eval.grading.structure import compare

# Left to itself the library stops reading at the first word that it does not know and compares what stands before.
_WORDED_INDEX = re.compile(r"_ ?\{? ?([A-Za-z]{2,}[A-Za-z ]*?) ?\}?(?![A-Za-z])")
_FUNCTIONS = "arcsin arccos arctan sinh cosh tanh sqrt sin cos tan sec csc cot log exp ln pi gcd lcm max min".split()
_BARE_FUNCTION = re.compile(rf"(?<![A-Za-z\\])({'|'.join(_FUNCTIONS)})(?![A-Za-z])")
_ROOT_OF = re.compile(r"\\sqrt ?\(([^()]*)\)")
_LOOSE_SPACE = re.compile(r"(?<![A-Za-z]) +| +(?![A-Za-z])")
_PRODUCT = re.compile(r"(?<![{A-Za-z\\])[a-z]{2,3}(?![A-Za-z}])")
_WORDS = re.compile(r"(?<![A-Za-z\\])(?:[A-Za-z]?[a-z]{3,}|of|to|or|is|in|at|if)(?![A-Za-z])")
_ENVIRONMENT = re.compile(r"\\(?:begin|end)\{\w+\}")


def math_verdict(gold: str, answer: str) -> bool | None:
    """Compare two answers of the kind `math` with algebra; a sentence is left to the library as it stands.

    Returns
    -------
    bool or None
        As `symbolic_verdict`.
    """
    if is_prose(gold) or is_prose(answer):
        return symbolic_verdict(gold, answer)
    return compare(gold, answer, expression_verdict)


def symbolic_verdict(gold: str, answer: str) -> bool | None:
    """Compare two expressions symbolically.

    Parameters
    ----------
    gold : str
        The reference, a bare LaTeX expression. It is passed to the library as the gold, which is not symmetric: an
        interval answers an inequality, not the other way round.
    answer : str
        The answer of the model: an expression without its box.

    Returns
    -------
    bool or None
        The verdict; None when one of the two cannot be read. Two rational values are compared exactly: the library's
        absolute tolerance would take 2^-99 for 2^-98.
    """
    from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse, verify

    logging.getLogger("math_verify").setLevel(logging.CRITICAL)  # it would say that its own time limits are off
    configs = [LatexExtractionConfig(), ExprExtractionConfig()]
    references = parse(_delimited(gold), extraction_config=configs, parsing_timeout=None, raise_on_error=True)
    candidates = parse(_delimited(answer), extraction_config=configs, parsing_timeout=None, raise_on_error=True)
    if not references or not candidates:
        return None
    left, right = _rational(references[0]), _rational(candidates[0])
    if left is not None and right is not None:
        return bool(left == right)
    return bool(verify(references, candidates, timeout_seconds=None, raise_on_error=True))


def expression_verdict(gold: str, answer: str) -> bool | None:
    """Compare two plain texts as expressions; what holds a word that is no expression equals nothing.

    Returns
    -------
    bool or None
        As `symbolic_verdict`.
    """
    ours, theirs = _spelled(gold), _spelled(answer)
    if any(_WORDS.search(_ENVIRONMENT.sub("", text)) for text in (ours, theirs)):
        return False
    return symbolic_verdict(ours, theirs)


def _spelled(text: str) -> str:
    """Spell what the library misreads: indices of several letters, functions without backslash, ab for a times b."""
    text = _WORDED_INDEX.sub(lambda match: f"_{{{crc32(match[1].lower().encode()) % 10**6}}}", text)
    text = _ROOT_OF.sub(r"\\sqrt{\1}", _BARE_FUNCTION.sub(r"\\\1", text))
    text = text.replace("\\log_e", "\\ln").replace("\\dots", "")
    text = re.sub(r"(?<=\d) ?\\cdot ?(?=[a-z])", "", text)
    text = _PRODUCT.sub(lambda match: " \\cdot ".join(match.group()), text)
    return _LOOSE_SPACE.sub("", text)


def _delimited(expression: str) -> str:
    """Math delimiters around a bare expression; without them LaTeX golds parse to nothing."""
    expression = expression.replace("\\$", "")
    return expression if "$" in expression or "\\(" in expression or "\\[" in expression else f"${expression}$"


def _rational(value: Any) -> Any:
    """The exact value of a rational number without decimals, None for anything else."""
    from sympy import Expr, Float

    if not isinstance(value, Expr) or value.free_symbols or value.has(Float):
        return None
    value = value.doit()
    return value if value.is_Rational else None
