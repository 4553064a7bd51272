"""What each method does to the predictions on given traces: python -m eval.fidelity (see configs/fidelity.yaml).

Teacher-forced, so that no sampling noise comes in: the tokens are given, and the distributions with the full cache and
with a method's are compared at each of them.
"""

import itertools
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from eval.cells import sample_seed
from eval.checkpoint import Checkpoint, find_checkpoint
from eval.given_traces import GivenTrace, given_traces, trace_file
from eval.policies import make_policy
from eval.reporting.fidelity import ROWS
from pipeline import AppendLog, Run, progress
from pipeline.cli import stage
from zoomr.errors import UserError

Key = tuple[str, int | None]  # a method, and the window that stands for a budget
FULL: Key = ("full", None)


@stage("fidelity")
def measure_fidelity(cfg: DictConfig) -> None:
    """Measure what is missing, trace by trace; eval.report makes the table and the figure.

    Parameters
    ----------
    cfg : DictConfig
        The composed configuration of configs/fidelity.yaml.

    Raises
    ------
    UserError
        When the traces, the checkpoint or a method's settings cannot be used.
    """
    config: Any = OmegaConf.to_container(cfg, resolve=True)
    settings = config["fidelity"]
    for method in settings["methods"].values():
        method.pop("show", None)
    file = trace_file(settings["path"], settings["split"])
    checkpoint = find_checkpoint(cfg)
    shaping = {name: value for name, value in settings.items() if name not in ("path", "split")}
    run = Run.open(
        Path(cfg.paths.runs),
        "fidelity",
        settings["name"],
        settings={"model": checkpoint.settings, "fidelity": shaping, "seed": cfg.seed, "limit": cfg.limit},
        inputs=checkpoint.inputs | {"fidelity.path": file},
        config=config,
        next_command=f"python -m eval.report preset={cfg.preset.name}",
        check=lambda: [
            make_policy(f"fidelity.methods.{name}", policy_of(method)) for name, method in settings["methods"].items()
        ],
    )
    if not run.complete:
        with closing(run), AppendLog(run.dir / ROWS) as log:
            traces = measure_missing(log, file, checkpoint, config)
            run.finish(counts={"traces": traces}, outputs=[ROWS])
    else:
        run.say_done()


def wanted(settings: dict[str, Any]) -> list[Key]:
    """The full cache, then every method at every window; the method that sets the budgets first."""
    first = settings["match"]["method"]
    methods = sorted(settings["methods"], key=lambda name: name != first)
    return [FULL, *((name, window) for window in settings["windows"] for name in methods)]


def measure_missing(log: AppendLog, file: Path, checkpoint: Checkpoint, config: dict[str, Any]) -> int:
    """Append the rows that the log lacks; returns the number of traces."""
    settings = config["fidelity"]
    model, tokenizer = checkpoint.load(config["device"])
    longest = min(settings["max_tokens"], model.config.max_position_embeddings)
    found = given_traces(file, tokenizer, settings["min_tokens"], longest)
    traces = list(itertools.islice(found, config["limit"]))
    if not traces:
        raise UserError(f"fidelity.min_tokens={settings['min_tokens']}: no trace of {file} is that long.")
    done = {row["id"]: row for row in log.rows()}
    keys = wanted(settings)
    with progress(total=len(keys) * len(traces), initial=len(done), unit="run", description=settings["name"]) as bar:
        for trace in traces:
            missing = [key for key in keys if row_id(trace, key) not in done]
            if not missing:
                continue
            for row in measure(model, tokenizer, trace, missing, done, settings, config["seed"]):
                log.append(row)
                done[row["id"]] = row
                bar.update()
    return len(traces)


def row_id(trace: GivenTrace, key: Key) -> str:
    """Key of a row."""
    return f"{trace.id}|{key[0]}|{key[1]}"


def measure(
    model: Any,
    tokenizer: Any,
    trace: GivenTrace,
    missing: list[Key],
    done: dict[str, dict[str, Any]],
    settings: dict[str, Any],
    seed: int,
) -> Iterator[dict[str, Any]]:
    """Run the missing methods over one trace, the full cache once for all of them.

    Parameters
    ----------
    done : dict
        Rows by id; those that set a budget are among them when it is asked for.
    """
    from zoomr.comparison import Reference

    reference = Reference(model, tokenizer, trace.prompt, trace.continuation)
    if FULL in missing:
        yield row_of(trace, FULL, {"_target_": "zoomr.Full"}, reference.itself(), [], settings)
    # The methods of a round share forwards; those that follow a budget come when it is known.
    following = [key for key in missing if settings["methods"].get(key[0], {}).get("budget") == "match"]
    leading = [key for key in missing if key not in (FULL, *following)]
    for keys in (leading, following):
        policies = []
        for method, window in keys:
            matched = done.get(row_id(trace, (settings["match"]["method"], window)))
            policies.append(policy_settings(settings["methods"][method], window, matched, settings["match"]))
        refreshes: list[list[Any]] = [[] for _ in keys]
        found = reference.compare(
            [
                make_policy(f"fidelity.methods.{method}", policy, model)
                for (method, _), policy in zip(keys, policies, strict=True)
            ],
            seed=sample_seed(seed, trace.id, 0),
            traces=[own.append for own in refreshes],
        )
        for key, policy, one, own in zip(keys, policies, found, refreshes, strict=True):
            yield row_of(trace, key, policy, one, own, settings)


def row_of(
    trace: GivenTrace, key: Key, policy: dict[str, Any], found: Any, refreshes: list[Any], settings: dict[str, Any]
) -> dict[str, Any]:
    """The row that is kept of a `zoomr.Fidelity`."""
    usage = found.stats
    return {
        "id": row_id(trace, key),
        "trace": trace.id,
        "method": key[0],
        "policy": policy,
        "window": key[1],
        "tokens": found.tokens,
        "nll_full": found.nll_full,
        "delta_nll": found.delta_nll,
        "kl": found.kl,
        "top1_agreement": found.top1_agreement,
        "seen_tokens": usage.seen_tokens,
        "active_tokens_mean": usage.active_tokens_mean,
        "active_tokens_peak": usage.active_tokens_peak,
        "refreshes": usage.refreshes,
        "active_at": {str(seen): active_at(refreshes, seen) for seen in settings["seen"]},
    }


def policy_settings(
    method: dict[str, Any], window: int | None, matched: dict[str, Any] | None, match: dict[str, Any]
) -> dict[str, Any]:
    """Settings of a method's policy at a budget.

    Parameters
    ----------
    method : dict
        As in configs/method.
    window : int
        What a method with a window gets.
    matched : dict or None
        The row of the method that sets the budget, on the same trace with the same window.
    match : dict
        ``fidelity.match``.
    """
    policy = policy_of(method)
    if "window" in policy:
        policy["window"] = window
    if policy.get("budget") == "match":
        if matched is None:
            raise UserError(f"fidelity.match.method={match['method']} is not among fidelity.methods.")
        policy["budget"] = round(matched[f"active_tokens_{match['statistic']}"])
    return policy


def policy_of(method: dict[str, Any]) -> dict[str, Any]:
    """The settings of a method's policy, without what is there for tables."""
    return {key: value for key, value in method.items() if key not in ("name", "show")}


def active_at(refreshes: list[Any], seen: int) -> int | None:
    """Active tokens after the first refresh with so many seen tokens; None where the trace is shorter."""
    return next((refresh.active for refresh in refreshes if refresh.position + 1 >= seen), None)


if __name__ == "__main__":
    measure_fidelity()
