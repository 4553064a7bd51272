"""Means, intervals and differences over problems. Deterministic: every resampling has a fixed seed."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES = 10_000
SEED = 0


@dataclass(frozen=True)
class Interval:
    """A mean with its 95% interval and the number of problems behind it; as text, a share in per cent."""

    mean: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        return f"{100 * self.mean:.1f} [{100 * self.low:.1f}, {100 * self.high:.1f}]"


@dataclass(frozen=True)
class Difference:
    """First minus second over the problems that both have, with its 95% interval and a two-sided p-value.

    As text, of two shares, in points.
    """

    mean: float
    low: float
    high: float
    p: float
    n: int

    def __str__(self) -> str:
        chance = "p < 0.001" if self.p < 0.001 else f"p = {self.p:.3f}"
        return f"{100 * self.mean:+.1f} [{100 * self.low:.1f}, {100 * self.high:.1f}], {chance}"


def share_interval(values: Sequence[float]) -> Interval:
    """Mean over problems with a percentile bootstrap interval.

    Parameters
    ----------
    values : sequence of float
        One value per problem, in [0, 1]: the share of its samples that are correct (pass@1).

    Returns
    -------
    Interval
        Where all values are 0, or all are 1, resampling shows no spread; the exact binomial (Clopper-Pearson) bound
        takes its place, 1 - 0.025^(1/n) away from the mean.

    Raises
    ------
    ValueError
        When there is no value.
    """
    if not values:
        raise ValueError("no value to average")
    data = np.asarray(values, dtype=float)
    mean, n = float(data.mean()), len(data)
    if np.all(data == data[0]) and data[0] in (0.0, 1.0):
        bound = 1 - 0.025 ** (1 / n)
        return Interval(mean, max(0.0, mean - bound), min(1.0, mean + bound), n)
    return mean_interval(values)


def mean_interval(values: Sequence[float]) -> Interval:
    """Mean of one value a problem or trace, of any size, with a percentile bootstrap interval."""
    data = np.asarray(values, dtype=float)
    low, high = _interval(data)
    return Interval(float(data.mean()), low, high, len(data))


def paired_difference(first: Mapping[str, float], second: Mapping[str, float]) -> Difference:
    """Difference of two cells on the problems that both have.

    Parameters
    ----------
    first, second : mapping of problem id to float
        One value per problem.

    Returns
    -------
    Difference
        The interval is a bootstrap over problems; p comes from a sign-flip permutation test of the mean, (1 + number of
        permutations at least as extreme) / (1 + permutations), which for 0/1 values is a test of the discordant pairs.

    Raises
    ------
    ValueError
        When no problem is shared.
    """
    shared = sorted(first.keys() & second.keys())
    if not shared:
        raise ValueError("the two cells share no problem")
    data = np.array([first[problem] - second[problem] for problem in shared])
    low, high = _interval(data)
    changed = data[data != 0]
    signs = np.random.default_rng(SEED).choice((-1.0, 1.0), size=(RESAMPLES, len(changed)))
    extreme = int(np.sum(np.abs(signs @ changed) >= abs(changed.sum()) - 1e-9))
    return Difference(float(data.mean()), low, high, (1 + extreme) / (1 + RESAMPLES), len(shared))


def majority(answers: Sequence[tuple[str | None, bool]]) -> bool:
    """Whether the most frequent answer of a problem's samples is correct (maj@n).

    Parameters
    ----------
    answers : sequence of (answer or None, correct)
        The samples of one problem, in order. Samples without an answer do not vote.

    Returns
    -------
    bool
        The verdict on the most frequent answer; correct answers count as one answer however they are written, and
        among equally frequent answers the earliest decides.
    """
    votes = Counter("correct" if correct else f"answer {text}" for text, correct in answers if text is not None)
    return bool(votes) and votes.most_common(1)[0][0] == "correct"


def _interval(data: np.ndarray) -> tuple[float, float]:
    picks = np.random.default_rng(SEED).integers(0, len(data), size=(RESAMPLES, len(data)))
    low, high = np.quantile(data[picks].mean(axis=1), (0.025, 0.975))
    return float(low), float(high)
