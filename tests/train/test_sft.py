"""The two commands as a user calls them: idempotent, refusing bad input in one sentence, launched on two processes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import train.export
import train.sft
from tests.train.conftest import Workshop, make_rows, write_build

ROOT = Path(__file__).parents[2]
QUICK = ("sft.max_steps=2", "sft.save_every=100", "sft.evaluate_every=100", "lora.dropout=0", "sft.warmup=0")
STAGES = {"sft": train.sft.main, "export": train.export.main}


@pytest.fixture
def call(monkeypatch, capfd):
    """Run a stage's command in this process; return its exit status, output and errors."""

    def run(stage, workshop, *overrides):
        monkeypatch.setattr(sys, "argv", [f"train/{stage}.py", *workshop.overrides(*overrides)])
        monkeypatch.chdir(ROOT)
        capfd.readouterr()
        try:
            STAGES[stage]()
            status = 0
        except SystemExit as ended:
            status = ended.code
        return status, *capfd.readouterr()

    return run


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    return Workshop(tmp_path_factory.mktemp("shop"))


def run_directory(outcome):
    status, out, err = outcome
    assert status == 0, err
    arrow, directory, *_ = out.splitlines()[-1].split()
    assert arrow == "->"
    return Path(directory)


def adapter(directory):
    return load_file(directory / "adapter" / "adapter_model.safetensors")


def counts(directory):
    return json.loads((directory / "manifest.json").read_text())["counts"]


def test_train_then_export_then_again(shop, call):
    once = call("sft", shop, *QUICK)
    directory = run_directory(once)
    assert once[1].rstrip().endswith("next: python -m train.export preset=micro")
    assert counts(directory)["rows"] == 12
    assert counts(directory)["steps"] == 2
    assert 0 < counts(directory)["supervised_share"] < 1
    manifest = (directory / "manifest.json").read_bytes()

    status, out, _ = call("sft", shop, *QUICK)
    assert (status, out) == (0, once[1].splitlines(keepends=True)[-1])
    assert (directory / "manifest.json").read_bytes() == manifest

    exported = run_directory(call("export", shop))
    assert max(counts(exported)["logit_difference"].values()) < 1e-4
    assert (exported / "merged" / "model.safetensors").exists()


def test_two_processes_train_as_one_with_as_many_rows_a_step(shop, call):
    alone = run_directory(call("sft", shop, *QUICK))
    launch = ["-m", "torch.distributed.run", "--nproc-per-node=2", "--master-port=29611", "-m", "train.sft"]
    outcome = subprocess.run(
        [sys.executable, *launch, *shop.overrides(*QUICK, "sft.accumulation=2")],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    both = run_directory((outcome.returncode, outcome.stdout, outcome.stderr))
    assert both != alone
    for name, tensor in adapter(alone).items():
        torch.testing.assert_close(adapter(both)[name], tensor, atol=1e-5, rtol=0)
    assert counts(both)["loss"] == pytest.approx(counts(alone)["loss"], abs=1e-4)


def test_what_does_not_change_the_adapter_does_not_change_its_directory(shop, call):
    plain = run_directory(call("sft", shop, *QUICK))
    rest = "sft.log_every=7", "sft.gradient_checkpointing=true", "tracker=offline"
    assert run_directory(call("sft", shop, *QUICK, *rest)) == plain
    assert run_directory(call("sft", shop, *QUICK, "lora.r=2")) != plain


def test_bad_input_is_refused_in_one_sentence(shop, call, tmp_path):
    other = write_build(tmp_path / "other", make_rows(shop.tokenizer, [0]), [], model="llama")
    rows = make_rows(shop.tokenizer, [0, 1])
    rows[1]["labels"] = [-100] * len(rows[1]["labels"])
    mute = write_build(tmp_path / "mute", rows, [])
    cases = {
        f"sft.data={tmp_path / 'none'}": "python -m data_gen.build",
        f"sft.data={other}": "holds token ids of model=llama, not of tiny",
        f"sft.data={mute}": "row row-1 has no supervised token.",
        "sft.learning_rat=1": "Did you mean sft.learning_rate?",
        "tracker=wandb": "Unknown choice tracker=wandb",
    }
    for override, sentence in cases.items():
        status, _, err = call("sft", shop, override)
        assert status == 2, override
        assert sentence in err
        assert "Traceback" not in err
