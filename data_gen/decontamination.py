"""Finds benchmark problems among training problems: the same text, the same text normalised, shared n-grams."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

PROMPT_PREFIX = re.compile(r"^\s*Return (?:your final response|the letter of the right choice) within \\boxed\{\}\.\s*")
LATEX_SPACING = re.compile(
    r"\\(?:left|right|displaystyle|quad|qquad|text|mathrm|textbf|[dt]?frac(?![a-z])|[,!;: ])|\\\\"
)
SIGNS = re.compile(r"[^a-z0-9+\-*/=<>^]")
WORD = re.compile(r"[a-z]+|\d+|[+\-*/=<>^]")


def problem_text(user: str) -> str:
    """Return the problem in a user turn, without the sentence that asks for a box."""
    return PROMPT_PREFIX.sub("", user).strip()


def normalise(problem: str) -> str:
    """Return the letters, digits and operators of a problem, so that layout and LaTeX spelling do not matter."""
    return SIGNS.sub("", LATEX_SPACING.sub("", problem.casefold()))


def ngrams(problem: str, n: int) -> set[int]:
    """Return hashes of the n-word runs of a problem."""
    words = WORD.findall(problem.casefold())
    return {hash(tuple(words[i : i + n])) for i in range(len(words) - n + 1)}


@dataclass
class Decontamination:
    """The problems of all benchmarks, and what was found of them.

    Attributes
    ----------
    n : int
        Words of an n-gram.
    overlap : float or None
        Share of a row's n-grams from which on it counts as the benchmark's; None only reports. A benchmark's problem
        is often found with a word changed or a line lost.
    exact, normalised : dict of str to str
        Problem text -> benchmark.
    grams : dict of int to str
        N-gram hash -> benchmark.
    problems, found : Counter
        Problems known and training rows matched, by benchmark.
    overlaps : list of (float, str, str)
        Share of n-grams that a row which is not the same has in common with a benchmark, the row's id, the benchmark.
    """

    n: int
    overlap: float | None
    exact: dict[str, str] = field(default_factory=dict)
    normalised: dict[str, str] = field(default_factory=dict)
    grams: dict[int, str] = field(default_factory=dict)
    problems: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    overlaps: list[tuple[float, str, str]] = field(default_factory=list)

    def know(self, benchmark: str, users: Iterable[str]) -> None:
        """Add a benchmark's problems, as texts or as user turns."""
        for user in users:
            problem = problem_text(user)
            self.exact[problem] = benchmark
            self.normalised[normalise(problem)] = benchmark
            self.grams |= dict.fromkeys(ngrams(problem, self.n), benchmark)
            self.problems[benchmark] += 1

    def match(self, row_id: str, user: str) -> str | None:
        """Return how a training row is a benchmark problem, such as `math500 (exact)`; None if it is not."""
        problem = problem_text(user)
        for kind, known, text in (
            ("exact", self.exact, problem),
            ("normalised", self.normalised, normalise(problem)),
        ):
            if text in known:
                return self._found(known[text], kind)
        grams = ngrams(problem, self.n)
        shared = [self.grams[gram] for gram in grams if gram in self.grams]
        if shared:
            share, benchmark = len(shared) / len(grams), Counter(shared).most_common(1)[0][0]
            self.overlaps.append((share, row_id, benchmark))
            if self.overlap is not None and share >= self.overlap:
                return self._found(benchmark, f"{self.n}-grams")
        return None

    def _found(self, benchmark: str, kind: str) -> str:
        self.found[f"{benchmark} ({kind})"] += 1
        return f"{benchmark} ({kind})"

    def highest(self, count: int = 20) -> list[tuple[float, str, str]]:
        """Return the rows with the largest overlaps."""
        return sorted(self.overlaps, reverse=True)[:count]
