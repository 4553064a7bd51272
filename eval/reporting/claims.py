"""The paper's orderings as questions to the data, each answered in one computed sentence."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from eval.reporting.cells import ScoredCell
from eval.reporting.table1 import BENCHMARKS, points, title
from eval.statistics import Difference, paired_difference

Pick = Callable[[ScoredCell], bool]


@dataclass(frozen=True)
class Claim:
    """First is said to be more accurate than second; ``question`` is what the comparison answers."""

    question: str
    first: Pick
    second: Pick


def plain(method: str) -> Pick:
    """The method as published: a baseline without the prompt kept."""
    return lambda cell: cell.method == method and not cell.policy.get("protect_prompt")


def with_prompt(method: str) -> Pick:
    """The baseline with the whole prompt kept."""
    return lambda cell: cell.method == method and bool(cell.policy.get("protect_prompt"))


CLAIMS = (
    Claim("Does zooming in beat summaries alone (ZoomR > SumR)?", plain("zoomr"), plain("sumr")),
    Claim("Does ZoomR beat StreamingLLM at its own budget?", plain("zoomr"), plain("streaming_llm")),
    Claim("Does ZoomR beat H2O at its own budget?", plain("zoomr"), plain("h2o")),
    Claim("Is the full cache still ahead of ZoomR?", plain("full"), plain("zoomr")),
    Claim("Does voting beat random zoom?", plain("zoomr"), plain("random_zoom")),
    Claim("Does voting beat zooming into the latest paragraphs?", plain("zoomr"), plain("recency_zoom")),
    Claim("Does keeping the prompt help StreamingLLM?", with_prompt("streaming_llm"), plain("streaming_llm")),
    Claim("Does keeping the prompt help H2O?", with_prompt("h2o"), plain("h2o")),
    Claim("Is ZoomR ahead of StreamingLLM once both keep the prompt?", plain("zoomr"), with_prompt("streaming_llm")),
    Claim("Is ZoomR ahead of H2O once both keep the prompt?", plain("zoomr"), with_prompt("h2o")),
    Claim("Is ZoomR ahead of random eviction that keeps the prompt?", plain("zoomr"), with_prompt("random_attention")),
)


def findings(cells: list[ScoredCell]) -> list[dict[str, Any]]:
    """Answer every claim on every benchmark and model.

    Parameters
    ----------
    cells : list of ScoredCell
        Cells with equal generation settings, at most one a method.

    Returns
    -------
    list of dict
        Question, sentence and the numbers behind it; a claim whose cells are missing is answered with ``not run``.
    """
    rows = []
    for benchmark, model in sorted({(cell.benchmark, cell.model["name"]) for cell in cells}):
        here = [cell for cell in cells if (cell.benchmark, cell.model["name"]) == (benchmark, model)]
        fine_tuned = [cell for cell in here if cell.model["checkpoint"] == "export"] or here
        for claim in CLAIMS:
            first = next((cell for cell in fine_tuned if claim.first(cell)), None)
            second = next((cell for cell in fine_tuned if claim.second(cell)), None)
            row: dict[str, Any] = {"benchmark": benchmark, "model": model, "question": claim.question}
            if first is None or second is None:
                rows.append(row | {"answer": "not run", "sentence": "Not run."})
                continue
            difference = paired_difference(first.accuracy, second.accuracy)
            rows.append(
                row
                | {
                    "answer": answer(difference),
                    "sentence": sentence(first, second, difference),
                    "difference": 100 * difference.mean,
                    "low": 100 * difference.low,
                    "high": 100 * difference.high,
                    "p": difference.p,
                    "n": difference.n,
                }
            )
    return rows


def answer(difference: Difference) -> str:
    """Yes or no where the interval leaves out zero and p < 0.05, otherwise undecided."""
    if difference.p >= 0.05 or difference.low <= 0 <= difference.high:
        return "undecided"
    return "yes" if difference.mean > 0 else "no"


def sentence(first: ScoredCell, second: ScoredCell, difference: Difference) -> str:
    """The answer in words and numbers."""
    verdict = {"yes": "Yes", "no": "No, the other way round", "undecided": "Cannot be told here"}[answer(difference)]
    return (
        f"{verdict}: {title(first)} minus {title(second)} is {points(difference)}, on {difference.n} "
        f"{BENCHMARKS.get(first.benchmark, first.benchmark)} problems; active tokens at the peak "
        f"{first.summary['meters']['active_tokens_peak']:.0f} and "
        f"{second.summary['meters']['active_tokens_peak']:.0f}."
    )
