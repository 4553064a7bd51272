"""The paper's orderings as questions to the data, each answered in one computed sentence."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from eval.reporting.cells import ScoredCell, groups
from eval.reporting.names import benchmark_title, look
from eval.reporting.sections import Answer, Heading, Part, Section, Text, cell_link, not_run
from eval.statistics import Difference, paired_difference

TITLE = "Do the paper's orderings show here?"
VERDICTS = {"yes": "Yes", "no": "No, the other way round", "undecided": "Cannot be told here"}
Pick = Callable[[ScoredCell], bool]
Answers = dict[tuple[str, str], list[Answer]]


class Question(Protocol):
    """What the cells of one benchmark and model can be asked."""

    def ask(self, cells: Sequence[ScoredCell]) -> Answer:
        """Answer from the cells; without links where one is missing."""


def plain(method: str) -> Pick:
    """The method as published: a baseline without the prompt kept."""
    return lambda cell: cell.method == method and not cell.keeps_prompt


def with_prompt(method: str) -> Pick:
    """The baseline with the whole prompt kept."""
    return lambda cell: cell.method == method and cell.keeps_prompt


def picked(cells: Sequence[ScoredCell], *picks: Pick) -> list[ScoredCell]:
    """The first cell that each of the picks accepts; empty when one accepts none."""
    found = [next((cell for cell in cells if pick(cell)), None) for pick in picks]
    return [cell for cell in found if cell is not None] if None not in found else []


def verdict(difference: Difference) -> str:
    """Yes or no where the interval leaves out zero and p < 0.05, otherwise undecided."""
    if difference.p >= 0.05 or difference.low <= 0 <= difference.high:
        return "undecided"
    return "yes" if difference.mean > 0 else "no"


@dataclass(frozen=True)
class Claim:
    """First is said to be more accurate than second; ``question`` is what the comparison answers."""

    question: str
    first: Pick
    second: Pick

    def ask(self, cells: Sequence[ScoredCell]) -> Answer:
        """Compare the two, paired over problems."""
        found = picked(cells, self.first, self.second)
        if not found:
            return Answer(self.question, "Not run.", "not-run")
        first, second = found
        difference = paired_difference(first.accuracy, second.accuracy)
        peaks = [f"{cell.meters['active_tokens_peak']:.0f}" for cell in found]
        sentence = (
            f"{VERDICTS[verdict(difference)]}: {first.title} minus {second.title} is {difference}, on "
            f"{difference.n} problems; active tokens at the peak {peaks[0]} and {peaks[1]}."
        )
        return Answer(self.question, sentence, verdict(difference), [cell_link(cell) for cell in found])


@dataclass(frozen=True)
class Protection:
    """Whether a baseline that keeps the prompt, as ZoomR does, is no longer behind ZoomR."""

    method: str

    def ask(self, cells: Sequence[ScoredCell]) -> Answer:
        """Compare ZoomR's lead over the method as published with its lead once both keep the prompt."""
        question = f"Does keeping the prompt explain ZoomR's lead over {look(self.method).title}?"
        found = picked(cells, plain("zoomr"), plain(self.method), with_prompt(self.method))
        if not found:
            return Answer(question, "Not run.", "not-run")
        links = [cell_link(cell) for cell in found]
        zoomed, published, protected = found
        before = paired_difference(zoomed.accuracy, published.accuracy)
        after = paired_difference(zoomed.accuracy, protected.accuracy)
        leads = f"{before}, as published and {after}, once both keep it, on {before.n} problems."
        if verdict(before) != "yes":
            return Answer(question, f"No lead to explain: it is {leads}", "undecided", links)
        share = f"keeping the prompt takes {100 * (1 - after.mean / before.mean):.0f}% of the lead, which is {leads}"
        if verdict(after) == "yes":
            return Answer(question, f"Not all of it: {share}", "no", links)
        return Answer(question, f"Yes: {share}", "yes", links)


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


def answers(cells: Sequence[ScoredCell]) -> Answers:
    """Answer every question on every benchmark and model, from cells with at most one a method."""
    return {key: [question.ask(here) for question in QUESTIONS] for key, here in groups(cells).items()}


def section(found: Answers) -> Section:
    """The questions and their answers; those that cannot be asked in one paragraph a benchmark."""
    if not found:
        return not_run("orderings", TITLE, "python -m eval.generate -m sweep=methods")
    rule = "Yes and no need an interval without zero and p < 0.05; else undecided. Paired over problems."
    parts: list[Part] = [Text(rule, soft=True)]
    for (benchmark, model), here in found.items():
        parts += [Heading(f"{benchmark_title(benchmark)}, {model}"), *(one for one in here if one.links)]
        if missing := unanswered(here):
            parts.append(Text(missing, soft=True))
    return Section("orderings", TITLE, parts)


def unanswered(found: Sequence[Answer]) -> str:
    """The questions for which a cell is missing, in one paragraph; empty where there is none."""
    missing = [one.question for one in found if not one.links]
    return " ".join(["Not run:", *missing]) if missing else ""
