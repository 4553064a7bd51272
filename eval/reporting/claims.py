"""The paper's orderings as questions to the data, each answered in one computed sentence."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from eval.reporting.cells import ScoredCell
from eval.reporting.table1 import NAMES, points, title
from eval.statistics import Difference, paired_difference

Pick = Callable[[ScoredCell], bool]
VERDICTS = {"yes": "Yes", "no": "No, the other way round", "undecided": "Cannot be told here"}


@dataclass(frozen=True)
class Finding:
    """A question with its answer.

    Attributes
    ----------
    question, sentence : str
        In words; the sentence begins with its verdict and a colon.
    answer : str
        yes, no, undecided, or not run.
    cells : tuple of ScoredCell
        The cells that the numbers come from.
    """

    question: str
    answer: str
    sentence: str
    cells: tuple[ScoredCell, ...] = ()


class Question(Protocol):
    """What the cells of one benchmark and model can be asked."""

    def ask(self, cells: Sequence[ScoredCell]) -> Finding:
        """Answer from the cells; ``not run`` where one is missing."""


def plain(method: str) -> Pick:
    """The method as published: a baseline without the prompt kept."""
    return lambda cell: cell.method == method and not cell.policy.get("keep_prompt")


def with_prompt(method: str) -> Pick:
    """The baseline with the whole prompt kept."""
    return lambda cell: cell.method == method and bool(cell.policy.get("keep_prompt"))


def picked(cells: Sequence[ScoredCell], *picks: Pick) -> list[ScoredCell]:
    """The first cell that each of the picks accepts; empty when one accepts none."""
    found = [next((cell for cell in cells if pick(cell)), None) for pick in picks]
    return [cell for cell in found if cell is not None] if None not in found else []


@dataclass(frozen=True)
class Claim:
    """First is said to be more accurate than second; ``question`` is what the comparison answers."""

    question: str
    first: Pick
    second: Pick

    def ask(self, cells: Sequence[ScoredCell]) -> Finding:
        """Compare the two, paired over problems."""
        found = picked(cells, self.first, self.second)
        if not found:
            return Finding(self.question, "not run", "Not run.")
        first, second = found
        difference = paired_difference(first.accuracy, second.accuracy)
        peaks = [f"{cell.summary['meters']['active_tokens_peak']:.0f}" for cell in found]
        sentence = (
            f"{VERDICTS[answer(difference)]}: {title(first)} minus {title(second)} is {points(difference)}, on "
            f"{difference.n} problems; active tokens at the peak {peaks[0]} and {peaks[1]}."
        )
        return Finding(self.question, answer(difference), sentence, (first, second))


@dataclass(frozen=True)
class Protection:
    """Whether a baseline that keeps the prompt, as ZoomR does, is no longer behind ZoomR."""

    method: str

    def ask(self, cells: Sequence[ScoredCell]) -> Finding:
        """Compare ZoomR's lead over the method as published with its lead once both keep the prompt."""
        question = f"Does keeping the prompt explain ZoomR's lead over {NAMES[self.method]}?"
        found = picked(cells, plain("zoomr"), plain(self.method), with_prompt(self.method))
        if not found:
            return Finding(question, "not run", "Not run.")
        zoomed, published, protected = found
        before = paired_difference(zoomed.accuracy, published.accuracy)
        after = paired_difference(zoomed.accuracy, protected.accuracy)
        leads = f"{points(before)}, as published and {points(after)}, once both keep it, on {before.n} problems."
        if answer(before) != "yes":
            return Finding(question, "undecided", f"No lead to explain: it is {leads}", tuple(found))
        share = f"keeping the prompt takes {100 * (1 - after.mean / before.mean):.0f}% of the lead, which is {leads}"
        if answer(after) == "yes":
            return Finding(question, "no", f"Not all of it: {share}", tuple(found))
        return Finding(question, "yes", f"Yes: {share}", tuple(found))


QUESTIONS: tuple[Question, ...] = (
    Claim("Does zooming in beat summaries alone (ZoomR > SumR)?", plain("zoomr"), plain("sumr")),
    Claim("Does ZoomR beat StreamingLLM at its own budget?", plain("zoomr"), plain("streaming_llm")),
    Claim("Does ZoomR beat H2O at its own budget?", plain("zoomr"), plain("h2o")),
    Claim("Is the full cache still ahead of ZoomR?", plain("full"), plain("zoomr")),
    Claim("Does voting beat random zoom?", plain("zoomr"), plain("random_zoom")),
    Claim("Does voting beat zooming into the latest paragraphs?", plain("zoomr"), plain("recency_zoom")),
    Claim("Would zooming by true attention beat voting?", plain("oracle_zoom"), plain("zoomr")),
    Claim("Would zooming into what a step depends on beat voting?", plain("given_zoom"), plain("zoomr")),
    Claim("Does keeping the prompt help StreamingLLM?", with_prompt("streaming_llm"), plain("streaming_llm")),
    Claim("Does keeping the prompt help H2O?", with_prompt("h2o"), plain("h2o")),
    Claim("Is ZoomR ahead of StreamingLLM once both keep the prompt?", plain("zoomr"), with_prompt("streaming_llm")),
    Claim("Is ZoomR ahead of H2O once both keep the prompt?", plain("zoomr"), with_prompt("h2o")),
    Claim("Is ZoomR ahead of random eviction that keeps the prompt?", plain("zoomr"), with_prompt("random_attention")),
    Protection("streaming_llm"),
    Protection("h2o"),
)


def unanswered(answers: Sequence[Finding]) -> str:
    """The questions for which a cell is missing, in one paragraph; empty where there is none."""
    missing = [one.question for one in answers if not one.cells]
    return " ".join(["Not run:", *missing]) if missing else ""


def groups(cells: list[ScoredCell]) -> dict[tuple[str, str], list[ScoredCell]]:
    """Cells by benchmark and model; where a model was fine-tuned, only those of the fine-tuned one."""
    found: dict[tuple[str, str], list[ScoredCell]] = {}
    for cell in sorted(cells, key=lambda cell: (cell.benchmark, cell.model["name"])):
        found.setdefault((cell.benchmark, cell.model["name"]), []).append(cell)
    return {key: [cell for cell in here if cell.model["checkpoint"] == "export"] or here for key, here in found.items()}


def findings(cells: list[ScoredCell]) -> dict[tuple[str, str], list[Finding]]:
    """Answer every question on every benchmark and model.

    Parameters
    ----------
    cells : list of ScoredCell
        Cells with equal generation settings, at most one a method.

    Returns
    -------
    dict of (benchmark, model) to list of Finding
        In the order of QUESTIONS.
    """
    return {key: [question.ask(here) for question in QUESTIONS] for key, here in groups(cells).items()}


def answer(difference: Difference) -> str:
    """Yes or no where the interval leaves out zero and p < 0.05, otherwise undecided."""
    if difference.p >= 0.05 or difference.low <= 0 <= difference.high:
        return "undecided"
    return "yes" if difference.mean > 0 else "no"
