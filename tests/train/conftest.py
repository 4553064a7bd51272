"""A base model and a finished build on the disk, and the composed configuration that trains the one on the other."""

import json

import hydra
import pytest
from datasets import Dataset
from omegaconf import OmegaConf

from pipeline.cli import CONFIGS
from tests.train.tiny import R1, save_base
from zoomr.loading import load_tokenizer
from zoomr.prompts import render_row

WORDS = "two three five seven plus minus is then so take note".split()


def example(index):
    """The turns of a made-up row; its length differs from row to row."""
    said = [WORDS[(index * 7 + i * i) % len(WORDS)] for i in range(4 + index % 5)]
    paragraphs = "".join(f"{word} and {word}.<|begin_of_summary|> {word}<|end_of_summary|>\n\n" for word in said)
    return "Think.", f"Question {index}?", f"<|begin_of_thought|>\n\n{paragraphs}<|end_of_thought|>\n\n{said[-1]}"


def make_rows(tokenizer, indices):
    rows = []
    for index in indices:
        ids, n_prompt = render_row(tokenizer, *example(index))
        rows.append({"id": f"row-{index}", "input_ids": ids, "labels": [-100] * n_prompt + ids[n_prompt:]})
    return rows


def write_build(directory, train, validation, model="tiny"):
    for name, rows in (("train", train), ("validation", validation)):
        if rows:
            Dataset.from_list(rows).save_to_disk(directory / name)
    manifest = {
        "ended": "2026-01-01",
        "outputs": {"train": str(len(train))},
        "counts": {"rows": {"train": len(train), "validation": len(validation)}},
        "config": {"model": {"name": model}},
    }
    (directory / "manifest.json").write_text(json.dumps(manifest))
    return directory


class Workshop:
    """Base model, built rows and configuration below one directory."""

    # Whatever the default preset says.
    paper = (
        "sft.batch_size=1",
        "sft.accumulation=4",
        "sft.learning_rate=1e-4",
        "sft.max_length=16384",
        "sft.evaluate_every=0.1",
        "sft.sampling=random",
        "lora.dropout=0.05",
    )

    def __init__(self, root, template=R1, **model):
        self.root, self.base, self.data = root, root / "base", root / "build"
        save_base(self.base, template=template, **model)
        self.tokenizer = load_tokenizer(self.base)
        write_build(self.data, make_rows(self.tokenizer, range(12)), make_rows(self.tokenizer, range(12, 16)))

    def overrides(self, *more):
        return [
            f"paths.root={self.root / 'runs'}",
            f"model.path={self.base}",
            "model.name=tiny",
            f"sft.data={self.data}",
            *self.paper,
            "sft.bf16=false",
            "sft.gradient_checkpointing=false",
            "sft.log_every=1",
            "sft.adherence.problems=0",
            "tracker=disabled",
            *more,
        ]

    def config(self, *more):
        with hydra.initialize_config_dir(str(CONFIGS), version_base="1.3"):
            composed = hydra.compose("train", overrides=self.overrides(*more))
        return OmegaConf.to_container(composed, resolve=True)


@pytest.fixture(scope="session")
def workshop(tmp_path_factory):
    return Workshop(tmp_path_factory.mktemp("workshop"))


@pytest.fixture(scope="session", params=[True, False], ids=["tied", "untied"])
def workshops(request, tmp_path_factory):
    return Workshop(tmp_path_factory.mktemp("workshop"), family="qwen2", tied=request.param, spare_rows=9)
