"""Intervals and differences. E17."""

from itertools import product

import numpy as np
import pytest

from eval.statistics import majority, paired_difference, share_interval


def test_interval_of_a_proportion_is_close_to_the_normal_one():
    values = [1.0] * 120 + [0.0] * 80
    found = share_interval(values)
    half = 1.96 * np.sqrt(0.6 * 0.4 / 200)
    assert found.mean == 0.6
    assert found.low == pytest.approx(0.6 - half, abs=0.01)
    assert found.high == pytest.approx(0.6 + half, abs=0.01)


def test_e17_thirty_problems_leave_a_wide_interval():
    found = share_interval([1.0] * 8 + [0.0] * 22)
    assert found.high - found.low > 0.25


def test_interval_has_width_even_where_all_problems_agree():
    found = share_interval([1.0] * 200)
    assert found.mean == found.high == 1.0
    assert found.low == pytest.approx(0.025 ** (1 / 200))


def test_results_are_deterministic():
    values = list(np.random.default_rng(1).random(50))
    assert share_interval(values) == share_interval(values)


def test_paired_difference_uses_shared_problems_only():
    found = paired_difference({"a": 1.0, "b": 1.0, "x": 0.0}, {"a": 0.0, "b": 1.0, "y": 1.0})
    assert (found.mean, found.n) == (0.5, 2)


def test_p_value_equals_the_exact_sign_flip_test_on_few_problems():
    first = {str(i): float(v) for i, v in enumerate([1, 1, 1, 1, 1, 0, 1, 0])}
    second = {str(i): float(v) for i, v in enumerate([0, 0, 0, 0, 1, 1, 0, 0])}
    changes = [first[i] - second[i] for i in first if first[i] != second[i]]
    flips = [
        abs(sum(s * c for s, c in zip(signs, changes, strict=True))) for signs in product((1, -1), repeat=len(changes))
    ]
    exact = np.mean([flip >= abs(sum(changes)) for flip in flips])
    assert paired_difference(first, second).p == pytest.approx(exact, abs=0.02)


def test_no_difference_has_p_one():
    same = {str(i): float(i % 2) for i in range(20)}
    assert paired_difference(same, same).p == 1.0


def test_majority_counts_correct_answers_as_one():
    assert majority([("0.5", True), ("1/2", True), ("3", False)])
    assert not majority([("4", False), ("4", False), ("1/2", True), (None, False)])
    assert not majority([(None, False)])
