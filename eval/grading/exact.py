"""The comparison of each kind of benchmark, without algebra where that is enough: it costs little and comes first."""

from fractions import Fraction

from eval.grading.choices import choice_letter
from eval.grading.dress import undress
from eval.grading.numbers import read_rational
from eval.grading.prose import is_prose
from eval.grading.structure import compare
from eval.grading.units import read_quantity


def rational(text: str) -> Fraction | None:
    r"""Read an exact rational number, with or without unit.

    Parameters
    ----------
    text : str
        An expression such as ``1,000.5``, ``-\frac{3}{4}``, ``3/4``, ``2\frac{1}{2}``, ``0.\overline{3}`` or ``28\%``.

    Returns
    -------
    Fraction or None
        Its value; None when it is anything else. A per cent sign is dropped, not divided by: the benchmarks write the
        number of per cent as the answer.
    """
    return read_rational(read_quantity(undress(text)).text)


def exact_verdict(gold: str, answer: str) -> bool | None:
    """Decide without algebra where that is possible.

    Parameters
    ----------
    gold, answer : str
        Two expressions.

    Returns
    -------
    bool or None
        Equal or not; None leaves the pair to the symbolic grader.
    """
    return None if is_prose(answer) or is_prose(gold) else compare(gold, answer, lambda ours, theirs: None)


def integer_verdict(gold: str, answer: str) -> bool | None:
    """AIME and ledger: the answer is an integer, written in base ten.

    Parameters
    ----------
    gold, answer : str
        The gold integer and the answer of the model; ``016`` and ``n = 16`` count as 16.

    Returns
    -------
    bool or None
        As `exact_verdict`.
    """
    base = read_quantity(undress(answer).rpartition("=")[2].strip()).base
    return False if base not in (None, 10) else exact_verdict(gold, answer)


def letter_verdict(gold: str, answer: str) -> bool:
    """GPQA: the answer is one of the letters A to D, alone or before the text of the choice.

    Parameters
    ----------
    gold, answer : str
        The gold letter and the answer of the model.

    Returns
    -------
    bool
        Whether the letters agree.
    """
    return choice_letter(answer) == gold.upper()
