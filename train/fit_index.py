"""Record rows, try layers and ranks, and store the index that finds its target best on held-out rows."""

import json
from pathlib import Path
from typing import Any

from datasets import Dataset, load_from_disk
from safetensors.torch import save
from transformers import PreTrainedTokenizerBase

from pipeline import progress, read_manifest, write_atomic
from train import targets
from train.bilinear import Example, fit, hits
from train.recording import Recording, places, prepare, record
from zoomr.errors import UserError
from zoomr.loading import load
from zoomr.summaries.index import FILE, LearnedIndex, decoder_layers, fingerprint
from zoomr.summaries.segments import boundary_table, delimiter_ids

Needs = dict[int, int]  # position of a look-up -> the paragraph that it needs


def fit_index(config: dict[str, Any], model_directory: Path, data: Path, directory: Path) -> dict[str, Any]:
    """Fit an index into `directory`.

    Parameters
    ----------
    config : dict
        The composed configuration of configs/index.yaml.
    model_directory : Path
        The exported model.
    data : Path
        A finished run of data_gen.build.
    directory : Path
        The run directory.

    Returns
    -------
    dict
        What it was fitted on, and how often each index that was tried finds its target among its first 1, 2 and 3
        (``target``) and, in rows that are ledgers, what their look-ups need (``needed``; it chooses nothing).

    Raises
    ------
    UserError
        If no row has a boundary after two summaries, or the target finds nothing to learn.
    """
    settings = config["index"]
    model, tokenizer = load(model_directory, device=settings["device"])
    prepare(model)
    count = len(decoder_layers(model))
    tried = sorted({round(n * (count - 1) / max(1, settings["layers"] - 1)) for n in range(settings["layers"])})
    recorded = {}
    for split in ("train", "validation"):
        rows = some_rows(data, split, settings["rows" if split == "train" else "validation_rows"])
        recorded[split] = record_rows(model, tokenizer, rows, tried, settings, split)
    example = {
        layer: {split: at_layer(recorded[split], number, settings["target"]) for split in recorded}
        for number, layer in enumerate(tried)
    }
    if not sum(one.weights.sum() for one in example[tried[0]]["train"]):
        raise UserError(f"index.target={settings['target']} finds nothing in these rows that an index could learn.")

    def attempt(layer: int, rank: int) -> tuple[LearnedIndex, dict[str, Any]]:
        parts = example[layer]
        index = fit(parts["train"], layer, rank, settings["epochs"], settings["learning_rate"], config["seed"])
        found = {"target": hits(index, parts["validation"])}
        told = at_layer(recorded["validation"], tried.index(layer), "labels")
        if sum(one.weights.sum() for one in told):
            found["needed"] = hits(index, told)
        return index, {"layer": layer, "rank": rank, **found}

    *others, most = sorted(settings["ranks"])
    attempts = [attempt(layer, most) for layer in progress(tried, unit="layer", description="index")]
    best_layer = max(attempts, key=how_good)[0].layer
    attempts += [attempt(best_layer, rank) for rank in others]
    index, chosen = max(attempts, key=how_good)
    print("\n".join(describe(report) for _, report in attempts))
    print(f"chosen: {describe(chosen)}")
    about = {"model": fingerprint(model), "layer": index.layer, "eps": index.eps, "target": settings["target"]}
    tensors = {"query": index.query, "key": index.key}
    # One entry, since the format does not keep the order of several and would write other bytes each time.
    write_atomic(directory / FILE, save(tensors, metadata={"index": json.dumps(about)}))
    rows_used = {split: len(part) for split, part in recorded.items()}
    return {**about, "rows": rows_used, "chosen": chosen, "tried": [report for _, report in attempts]}


def some_rows(data: Path, split: str, count: int) -> Dataset:
    """Return `count` rows of a split, evenly from all of it."""
    if not read_manifest(data)["counts"]["rows"][split]:
        raise UserError(f"index.data={data} has no {split} rows; build.validation_share holds some out.")
    rows = load_from_disk(str(data / split))
    return rows.select([n * len(rows) // count for n in range(count)] if count < len(rows) else range(len(rows)))


def record_rows(
    model: Any,
    tokenizer: PreTrainedTokenizerBase,
    rows: Dataset,
    layers: list[int],
    settings: dict[str, Any],
    split: str,
) -> list[tuple[Recording, Needs]]:
    """Record those rows that have a boundary after two summaries."""
    boundary_tokens, delimiters = boundary_table(tokenizer), delimiter_ids(tokenizer)
    found = []
    for row in progress(rows, unit="row", description=f"{split} rows"):
        where = places(row, boundary_tokens, delimiters, settings["span"])
        if where.boundaries:
            recording = record(model, row, where, layers, gradient=settings["target"] == "gradient")
            found.append((recording, targets.needed(row["input_ids"], tokenizer, where)))
    if not found:
        raise UserError(f"index.data: no {split} row has a sentence's end after two summaries.")
    return found


def at_layer(recorded: list[tuple[Recording, Needs]], number: int, target: str) -> list[Example]:
    """Return rows as examples of the `number`-th recorded layer."""
    examples = []
    for one, needs in recorded:
        candidates = one.places.candidates()
        if target == "labels":
            shares, weights = targets.labels(needs, one.places)
        else:
            shares, weights = getattr(targets, target)(one.evidence, candidates)
        examples.append(Example(one.queries[number], one.keys[number], candidates, shares, weights))
    return examples


def how_good(attempt: tuple[LearnedIndex, dict[str, Any]]) -> float:
    """Return what chooses: how much of the target is found, over c = 1, 2 and 3."""
    return sum(attempt[1]["target"])


def describe(report: dict[str, Any]) -> str:
    """Return an attempt in one line."""
    kinds = [name for name in ("target", "needed") if name in report]
    found = ", ".join(f"{name} " + "/".join(f"{share:.3f}" for share in report[name]) for name in kinds)
    return f"layer {report['layer']} rank {report['rank']}: {found} among the first 1/2/3"
