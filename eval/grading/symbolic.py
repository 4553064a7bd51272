"""Equality of expressions through math-verify. It runs in a child process: nothing in here bounds its time."""

from typing import Any


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

    configs = [LatexExtractionConfig(), ExprExtractionConfig()]
    references = parse(_delimited(gold), extraction_config=configs, parsing_timeout=None, raise_on_error=True)
    candidates = parse(_delimited(answer), extraction_config=configs, parsing_timeout=None, raise_on_error=True)
    if not references or not candidates:
        return None
    left, right = _rational(references[0]), _rational(candidates[0])
    if left is not None and right is not None:
        return bool(left == right)
    return bool(verify(references, candidates, timeout_seconds=None, raise_on_error=True))


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
