"""No benchmark problem among the training rows, and no problem in both splits."""

import pytest

from data_gen.decontamination import Decontamination, ngrams, normalise, problem_text
from data_gen.records import Skip
from data_gen.split import Split
from pipeline import read_rows
from tests.data_gen.conftest import trace

PROBLEM = r"What is $\dfrac{3}{4}+\frac14$, if $x \ge 2$?"


@pytest.mark.parametrize(
    ("user", "found"),
    [
        (PROBLEM, "math (exact)"),
        (r"Return your final response within \boxed{}. " + PROBLEM, "math (exact)"),
        (PROBLEM.replace(r"\dfrac", r"\frac").replace("$", "").upper().replace("FRAC", "frac"), "math (normalised)"),
        (PROBLEM.replace("+", "-"), None),
        (PROBLEM.replace("3", "5"), None),
    ],
)
def test_benchmark_problems_are_found(user, found):
    known = Decontamination(8, 0.6)
    known.know("math", [r"Return your final response within \boxed{}. " + PROBLEM])
    assert known.match("row", user) == found


def test_ngram_overlap_is_the_share_of_a_problems_ngrams():
    known = Decontamination(3, None)
    known.know("math", ["one two three four five six"])
    assert known.match("row", "zero one two three four seven") is None
    assert known.highest() == [(0.5, "row", "math")]
    assert len(ngrams("a b c d", 3)) == 2


def test_real_benchmark_problems_are_found_among_real_traces(shared_data):
    """The sample holds 17 traces on AIME 2024 problems, and none on the other benchmarks."""
    known = Decontamination(8, 0.6)
    for name, field in (("aime2024", "problem"), ("aime2025", "problem"), ("math500", "problem")):
        known.know(name, [row[field] for row in read_rows(shared_data / f"{name}.jsonl")])
    for row in read_rows(shared_data / "reasoning_traces_sample.jsonl"):
        overlap = row["meta"]["eval_overlap"]
        match = known.match(row["meta"]["id"], row["conversations"][0]["value"])
        assert bool(match) == bool(overlap), (match, overlap, row["meta"]["id"])


def test_no_problem_is_in_both_splits():
    split = Split(0.5)
    users = [f"What is {n}?" for n in range(200)]
    first = [split(trace(n, ["x"], user)) for n, user in enumerate(users)]
    again = [split(trace(n, ["y"], rf"Return your final response within \boxed{{}}. {u}")) for n, u in enumerate(users)]
    assert first == again
    assert 60 < first.count("validation") < 140
    split(trace(0, ["x"], "Why?", "train"))
    with pytest.raises(Skip, match="both splits"):
        split(trace(1, ["x"], "Why?", "validation"))


def test_normalising_keeps_what_makes_a_problem():
    assert normalise(r"$\left( x + 1 \right)$") == normalise("x+1")
    assert normalise("x < 2") != normalise("x > 2")
    assert problem_text(r" Return your final response within \boxed{}. Why?") == "Why?"
