"""Verdicts without algebra. E05, E06, E10, E11."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.grading.exact import exact_verdict, integer_verdict, letter_verdict, rational


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,000.5", Fraction(2001, 2)),
        ("32,\\! 349", 32349),
        ("-\\frac{3}{4}", Fraction(-3, 4)),
        ("\\dfrac34", Fraction(3, 4)),
        ("918\\frac{1}{2}", Fraction(1837, 2)),
        ("$\\frac{1}{3} \\text{}$", Fraction(1, 3)),
        (".4", Fraction(2, 5)),
        ("28\\%", 28),
        ("90^\\circ", 90),
        ("0.\\overline{3}", Fraction(1, 3)),
        ("1.2\\overline{34}", Fraction(611, 495)),
        ("2 1/2", Fraction(5, 2)),
        ("1.5 \\times 10^{-3}", Fraction(3, 2000)),
        ("1,000 \\text{ m/s}^2", 1000),
        ("\\$10", 10),
        ("1/0", None),
        ("1,00", None),
        ("x", None),
        ("9" * 201, None),
    ],
)
def test_rational_reads_numbers_and_nothing_else(text, value):
    assert rational(text) == value


@given(st.fractions(max_denominator=10**6))
def test_rational_reads_back_what_was_written(value):
    sign = "-" if value < 0 else ""
    assert rational(f"{sign}\\frac{{{abs(value.numerator)}}}{{{value.denominator}}}") == value


@pytest.mark.parametrize(
    ("gold", "answer", "equal"),
    [
        ("28\\%", "28", True),
        ("28", "28\\%", True),
        ("28\\%", "28 percent", True),
        ("28\\%", "0.28", False),
        ("10", "10\\%", True),
        ("10", "1000", False),
        ("\\$78", "78", True),
        ("78", "\\$78", True),
        ("90^\\circ", "90", True),
        ("8", "8.0", True),
    ],
)
def test_e05_units_are_dropped_and_never_divided_by(gold, answer, equal):
    assert exact_verdict(gold, answer) is equal


def test_e06_tiny_rationals_differ():
    assert exact_verdict(f"\\frac{{1}}{{{2**99}}}", f"\\frac{{1}}{{{2**98}}}") is False
    assert exact_verdict(f"\\frac{{1}}{{{2**99}}}", "0.000000") is False


@given(st.fractions(min_value=-1000, max_value=1000, max_denominator=999))
def test_a_decimal_stands_for_a_fraction_from_six_digits_on(value):
    gold = f"\\frac{{{value.numerator}}}{{{value.denominator}}}"
    digits = f"{float(value):.9f}"
    if abs(value) >= Fraction(1, 1000):
        assert exact_verdict(gold, digits) is True
        assert exact_verdict(digits, gold) is True
    assert exact_verdict(gold, f"{float(value) + 1e-6:.9f}") is False


@pytest.mark.parametrize(
    ("gold", "answer", "equal"),
    [("16", "016", True), ("016", "16", True), ("033", "33", True), ("11", "711", False), ("49", "149", False)]
    + [("16", "n = 16", True), ("16", "16, 17", False), ("16", "$16$", True), ("16", "sixteen", None)]
    + [("16", "16_5", False), ("16", "16_{10}", True), ("16", "16, 16", False)],
)
def test_e10_e11_integers_are_compared_as_numbers(gold, answer, equal):
    assert integer_verdict(gold, answer) is equal


@pytest.mark.parametrize(
    ("answer", "equal"),
    [
        ("C", True),
        ("(C)", True),
        ("\\text{(C)}", True),
        ("C. 42 m", True),
        ("(C) 42 m", True),
        ("B", False),
        ("42", False),
    ]
    + [("Charm", False), ("A or C", False)],
)
def test_letters(answer, equal):
    assert letter_verdict("C", answer) is equal


def test_words_are_compared_whole():
    assert exact_verdict("\\text{Evelyn}", "evelyn") is True
    assert exact_verdict("odd", "\\text{oddd}") is False
