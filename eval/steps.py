"""Where each method's damage starts: python -m eval.steps (see configs/steps.yaml).

A whole answer says too little of a chain in which every look-up must be right. Here the solution is given token by
token, and what is measured is whether each look-up would have been right under a method, and whether the method had
zoomed into the paragraph that it needed, which the world knows.
"""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig, OmegaConf

from data_gen.worlds import world_of
from eval.checkpoint import Checkpoint, find_checkpoint
from eval.policies import index_inputs, make_policy
from eval.reporting.steps import ROWS, looking_heads
from pipeline import AppendLog, Run, progress, read_rows
from pipeline.cli import stage
from zoomr.errors import UserError

if TYPE_CHECKING:
    from data_gen.solution import Solution
    from zoomr.forcing import Forced
    from zoomr.trace import Refresh


@stage("steps")
def measure_steps(cfg: DictConfig) -> None:
    """Measure the methods that are missing; eval.report makes the table and the figure."""
    config: Any = OmegaConf.to_container(cfg, resolve=True)
    checkpoint = find_checkpoint(cfg)
    indices: dict[str, Path] = {}
    for policy in config["steps"]["methods"].values():
        indices |= index_inputs(policy)
    run = Run.open(
        Path(cfg.paths.runs),
        "steps",
        cfg.model.name,
        settings={"steps": config["steps"], "model": checkpoint.settings, "seed": cfg.seed},
        inputs=checkpoint.inputs | indices,
        config=config,
        next_command=f"python -m eval.report preset={cfg.preset.name}",
        check=lambda: check_policies(config["steps"]["methods"]),
    )
    if run.complete:
        run.say_done()
    else:
        with closing(run), AppendLog(run.dir / ROWS) as log:
            measure_missing(log, checkpoint, config)
            run.finish(counts={"methods": len(config["steps"]["methods"])}, outputs=[ROWS])
    rows = read_rows(run.dir / ROWS)
    print(f"   heads that choose the needed summary in half of the look-ups: method.voters={looking_heads(rows)}")


def measure_missing(log: AppendLog, checkpoint: Checkpoint, config: dict[str, Any]) -> None:
    """Append a row for each method that the log lacks."""
    from data_gen.solution import solution
    from eval.head_hits import HeadHits

    settings = config["steps"]
    model, tokenizer = checkpoint.load(config["device"])
    world = world_of(settings["world"], "steps.world")
    wanted = settings["problems"], settings["lengths"], config["seed"], settings["value"]
    drawn = [problem for _, problem in world.problems("validation", *wanted)]
    solutions = [solution(world, problem, tokenizer) for problem in drawn]
    targets = [problem.dependencies for problem in drawn]
    done = log.keys()
    with progress(total=len(settings["methods"]), initial=len(done), unit="method", description="steps") as bar:
        for name, policy in settings["methods"].items():
            if name in done:
                continue
            found = Found(solutions)
            if not found.far:
                raise UserError(
                    f"steps.lengths={settings['lengths']}: no ledger has a look-up beyond the paragraph before."
                )
            tally = HeadHits({key: look_up.needs for key, look_up in found.far.items()})
            blanks = {"targets": targets, "tally": tally}
            given = {blank: value for blank, value in blanks.items() if blank in policy}
            known = {key: value for key, value in policy.items() if key not in blanks}
            forced = run_policy(
                model, tokenizer, solutions, make_policy(f"steps.methods.{name}", known, model, **given), found
            )
            log.append({"id": name, "policy": known, "head_hits": tally.shares()} | found.row(forced))
            bar.update()


def check_policies(methods: dict[str, dict[str, Any]]) -> None:
    """Make every policy once, so that what one refuses is said before a model is loaded."""
    for name, policy in methods.items():
        make_policy(f"steps.methods.{name}", policy)


def run_policy(model: Any, tokenizer: Any, solutions: "list[Solution]", policy: Any, found: "Found") -> "list[Forced]":
    """Feed every solution through a policy."""
    from zoomr import teacher_forced

    return teacher_forced(
        model,
        tokenizer,
        [solution.prompt for solution in solutions],
        [solution.continuation for solution in solutions],
        policy=policy,
        batch_size=len(solutions),
        mode="mask",
        trace=found.take,
    )


@dataclass
class Found:
    """Collects, for the look-ups whose paragraph had left the window, what each refresh had zoomed into.

    Attributes
    ----------
    solutions : list of Solution
    far : dict
        These look-ups, by (solution, position in the row of the last refresh before the value).
    zoomed : dict
        The refreshes of a solution: at which position, and into which paragraphs.
    shares : list of float
        Share of the votes that fell on the needed summary.
    chances : list of float
        One over the number of finished summaries: that share if heads voted blindly.
    """

    solutions: "list[Solution]"
    zoomed: dict[int, list[tuple[int, Sequence[int]]]] = field(default_factory=dict)
    shares: list[float] = field(default_factory=list)
    chances: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.far = {
            (index, len(solution.prompt) + look_up.position): look_up
            for index, solution in enumerate(self.solutions)
            for look_up in solution.look_ups
            if look_up.needs < look_up.paragraph - 1
        }

    def take(self, refresh: "Refresh") -> None:
        """Note one refresh."""
        self.zoomed.setdefault(refresh.prompt, []).append((refresh.position, refresh.zoomed))
        key = refresh.prompt, refresh.position
        if key not in self.far:
            return
        needs = self.far[key].needs
        if refresh.votes and sum(refresh.votes):
            self.shares.append(refresh.votes[needs] / sum(refresh.votes))
            self.chances.append(1 / refresh.finished)

    def hit(self, key: tuple[int, int]) -> bool:
        """Whether the last refresh up to a look-up's name has zoomed into the paragraph that it needs."""
        index, name = key
        before = [zoomed for position, zoomed in self.zoomed.get(index, []) if position <= name]
        return bool(before) and self.far[key].needs in before[-1]

    def row(self, forced: "list[Forced]") -> dict[str, Any]:
        """Shares a problem: look-ups right and hits, if any are far, and other tokens; mean shares of votes."""
        look_ups, hits, others, active = [], [], [], []
        for index, (solution, result) in enumerate(zip(self.solutions, forced, strict=True)):
            right = [int(top) == token for top, token in zip(result.top, solution.continuation, strict=True)]
            far = {key: look_up for key, look_up in self.far.items() if key[0] == index}
            if far:
                look_ups.append([all(right[token] for token in look_up.answer) for look_up in far.values()])
            if far and self.zoomed:
                hits.append([self.hit(key) for key in far])
            answers = {token for look_up in solution.look_ups for token in look_up.answer}
            others.append([ok for position, ok in enumerate(right) if position not in answers])
            active.append(result.stats.active_tokens_peak)
        return {
            "look_ups": [sum(flags) / len(flags) for flags in look_ups],
            "hits": [sum(flags) / len(flags) for flags in hits],
            "others": [sum(flags) / len(flags) for flags in others],
            "active_tokens_peak": active,
            "seen_tokens": [len(solution.prompt) + len(solution.continuation) for solution in self.solutions],
            "vote_share": sum(self.shares) / len(self.shares) if self.shares else None,
            "vote_chance": sum(self.chances) / len(self.chances) if self.chances else None,
        }


if __name__ == "__main__":
    measure_steps()
