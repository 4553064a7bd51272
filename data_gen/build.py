"""Stage 3: traces and summaries -> rows of token ids to train on, with a report to look at.

`python -m data_gen.build build.over_length=cut`
"""

import itertools
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from data_gen.configuration import is_whole, plain
from data_gen.conversations import SPLITS, Conversation
from pipeline import Run, iterate_rows, progress, read_manifest, resolve_run, write_atomic, write_json, write_rows
from pipeline.cli import CONFIGS, stage
from pipeline.files import writing
from pipeline.objects import model_path
from pipeline.run import content_digest
from zoomr.errors import UserError


@stage("data_gen")
def build(cfg: DictConfig) -> None:
    """Build the training set."""
    setup = cfg.build
    prepared = resolve_run(setup.traces, setting="build.traces", command="python -m data_gen.prepare")
    summarised = resolve_run(setup.summaries, setting="build.summaries", command="python -m data_gen.summarize")
    _check_same_traces(prepared, summarised)
    for name, allowed in (("over_length", ("drop", "cut")), ("missing", ("drop", "leave"))):
        if setup[name] not in allowed:
            raise UserError(f"build.{name}={setup[name]} must be {' or '.join(allowed)}.")
    config = plain(cfg)
    files = {name: Path(path) for name, path in config["build"]["benchmark_files"].items() if path}
    benchmarks = config["dataset"]["benchmarks"]
    local_tokenizer = Path(model_path(cfg.model)) / "tokenizer.json"
    run = Run.open(
        cfg.paths.runs,
        stage="build",
        label=cfg.dataset.name,
        settings={
            "model": {"name": cfg.model.name, "revision": cfg.model.revision},
            "max_length": setup.max_length,
            "over_length": setup.over_length,
            "missing": setup.missing,
            "validation_share": setup.validation_share,
            "ngram": setup.ngram,
            "overlap": setup.overlap,
            "samples": setup.samples,
            "benchmarks": benchmarks,
            "limit": cfg.limit,
        },
        inputs={"build.traces": prepared, "build.summaries": summarised}
        | {f"build.benchmark_files.{name}": files[name] for name in benchmarks if name in files}
        | ({"model.path": local_tokenizer} if local_tokenizer.exists() else {}),
        config=config,
        next_command=f"python -m train.sft preset={cfg.preset.name}",
    )
    if is_whole(run):
        return run.say_done()

    from data_gen.assemble import RowBuilder
    from data_gen.card import card
    from data_gen.dataset import write_splits
    from data_gen.decontamination import Decontamination
    from data_gen.split import Split
    from data_gen.validation import Validation
    from zoomr.loading import load_tokenizer

    tokenizer = load_tokenizer(cfg.model.path, cfg.model.revision)
    decontamination = Decontamination(setup.ngram, setup.overlap)
    for name in benchmarks:
        decontamination.know(name, benchmark_problems(name, files.get(name), cfg.seed))
    validation = Validation(tokenizer, decontamination, read_manifest(summarised)["counts"], setup.samples)
    traces = (Conversation(**row) for row in itertools.islice(iterate_rows(prepared / "traces.jsonl"), cfg.limit))
    total = read_manifest(prepared)["counts"]["traces"]
    with writing(run.dir):
        write_splits(
            progress(traces, total=min(total, cfg.limit or total), unit="trace", description="build"),
            summarised / "summaries.jsonl",
            run.dir,
            RowBuilder(tokenizer, setup.max_length, setup.over_length, setup.missing),
            Split(setup.validation_share),
            validation,
        )
    for warning in validation.warnings:
        print(f"warning: {warning}")
    if not validation.kept["train"]:
        reasons = ", ".join(f"{number} {reason}" for reason, number in validation.reasons)
        raise UserError(f"build.traces={setup.traces}: no row is left to train on ({reasons or 'no traces'}).")
    counts = {
        "rows": {split: validation.kept[split] for split in SPLITS},
        "dropped": dict(validation.reasons),
        "cut": validation.cut,
    }
    write_rows(run.dir / "dropped.jsonl", validation.dropped)
    write_json(run.dir / "validation.json", validation.summary())
    write_atomic(run.dir / "validation.html", validation.to_html(cfg.dataset.name))
    write_atomic(run.dir / "README.md", card(cfg, run.manifest, counts, read_manifest(summarised)["settings"]["model"]))
    texts = [f"{split}.jsonl" for split in SPLITS]
    run.finish(counts, [*SPLITS, *texts, "dropped.jsonl", "validation.json", "validation.html", "README.md"])
    return None


def benchmark_problems(name: str, file: Path | None, seed: int) -> list[str]:
    """Return the user turns of a benchmark of configs/benchmark.

    Raises
    ------
    UserError
        If there is no such benchmark, or it cannot be loaded.
    """
    import hydra

    path = CONFIGS / "benchmark" / f"{name}.yaml"
    if not path.exists():
        raise UserError(f"dataset.benchmarks: there is no {path}.")
    # The seed stands beside the benchmark, as in the composed configuration, since one refers to the other.
    config = OmegaConf.create({"seed": seed, "benchmark": OmegaConf.load(path)})
    if file:
        config.benchmark.path = str(file)
    try:
        return [problem.user for problem in hydra.utils.instantiate(config.benchmark).load()]
    except UserError as error:
        raise UserError(f"build.benchmark_files.{name}: {error}") from error


def _check_same_traces(prepared: Path, summarised: Path) -> None:
    made_from = read_manifest(summarised)["inputs"]["summarize.traces"]["sha256"]
    if made_from != content_digest(prepared):
        raise UserError(
            f"build.traces={prepared} is not what build.summaries={summarised} was made from: "
            "run `python -m data_gen.summarize` again, or name the matching directories."
        )


if __name__ == "__main__":
    build()
