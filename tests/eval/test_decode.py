"""The loop around the decoder: memory that runs out, and budgets of every form."""

from types import SimpleNamespace

import pytest
import torch
from omegaconf import OmegaConf

import zoomr.generation
from data_gen.benchmarks import Problem
from eval.cells import requests
from eval.decode import decode
from tests.train.tiny import make_tokenizer
from zoomr.errors import UserError

WANTED = requests([Problem(f"p{n}", f"question {n}", "1", "system") for n in range(7)], 1, 0, None)
CFG = OmegaConf.create(
    {
        "method": {"name": "full", "_target_": "zoomr.Full"},
        "generation": {"max_new_tokens": 8, "temperature": 0.0, "top_p": 1.0},
        "batch_size": 4,
        "device": "cpu",
        "system_prompt": None,
    }
)


def checkpoint():
    tokenizer = make_tokenizer()
    return SimpleNamespace(load=lambda device: (SimpleNamespace(), tokenizer))


def fake_stream(fits: int, asked: list[int]):
    """Finishes two rows, then runs out of memory while the batch is larger than `fits`."""

    def stream(model, tokenizer, prompts, *, seeds, batch_size, **options):
        asked.append(batch_size)
        for index, seed in enumerate(seeds):
            if batch_size > fits and index == 2:
                raise torch.OutOfMemoryError
            yield SimpleNamespace(prompt=index, to_dict=lambda seed=seed: {"seed": seed})

    return stream


def test_out_of_memory_halves_the_batch_and_loses_nothing(monkeypatch):
    asked: list[int] = []
    monkeypatch.setattr(zoomr.generation, "stream", fake_stream(1, asked))
    done = list(decode(WANTED, CFG, checkpoint(), None))
    assert asked == [4, 2, 1]
    assert sorted(request.id for request, _ in done) == sorted(request.id for request in WANTED)
    assert all(row["seed"] == request.seed for request, row in done)


def test_a_row_that_never_fits_is_said(monkeypatch):
    monkeypatch.setattr(zoomr.generation, "stream", fake_stream(0, []))
    with pytest.raises(UserError, match="batch_size=1"):
        list(decode(WANTED, CFG, checkpoint(), None))


def test_prompt_hash_tells_prompts_apart(monkeypatch):
    monkeypatch.setattr(zoomr.generation, "stream", fake_stream(9, []))
    hashes = [row["prompt_hash"] for _, row in decode(WANTED, CFG, checkpoint(), None)]
    assert len(set(hashes)) == 7
    assert hashes == [row["prompt_hash"] for _, row in decode(WANTED, CFG, checkpoint(), None)]
