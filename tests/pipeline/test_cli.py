"""Bad command lines: exit code 2, one clear sentence first, no traceback."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf

from pipeline.checks import quoted
from pipeline.cli import stage

ROOT = Path(__file__).parents[2]

CASES = {
    "method.cc=3": "Unknown setting method.cc.",
    "methd=zoomr": "Unknown setting methd. Did you mean method?",
    "method=zomr": "Unknown choice method=zomr. Did you mean zoomr?",
    "generation.max_new_token=4": "Unknown setting generation.max_new_token. Did you mean generation.max_new_tokens?",
    "hydra.ouput_subdir=x": "Unknown setting hydra.ouput_subdir.",
    "limit": "Cannot read limit: write setting=value.",
    "model.path=<|x|>": "Cannot read model.path=<|x|>: a value with such characters is written 'model.path=\"<|x|>\"'",
    "model.path=a,b": "model.path=a,b is several values: add -m to run them all, or write 'model.path=\"a,b\"'",
    "paths.rot=x": "Unknown setting paths.rot. Did you mean paths.root?",
}
JOB = """
import sys
from pipeline.cli import stage
from zoomr.errors import UserError

@stage("eval")
def main(config):
    if config.seed == 7:
        raise UserError("seed=7 is taken.")
    if config.seed == 8:
        raise ValueError("a bug")
    print("ran", config.method.name)

main()
"""


def run(tmp_path, *overrides):
    script = tmp_path / "job.py"
    script.write_text(JOB)
    command = [sys.executable, str(script), f"paths.root={tmp_path}", *overrides]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(command, capture_output=True, text=True, env=environment)


@pytest.mark.parametrize(("override", "sentence"), CASES.items())
def test_h06_h08_a_refused_override_is_one_sentence(tmp_path, override, sentence):
    outcome = run(tmp_path, override)
    assert outcome.returncode == 2
    assert outcome.stderr.splitlines()[0].startswith(sentence)
    assert len(outcome.stderr.splitlines()) == 1
    assert "Traceback" not in outcome.stderr


ODD = [
    "a=b",
    "a b",
    "a,b",
    "[x]",
    "x[1]",
    "{a}",
    "(x)",
    "a#b",
    "it's",
    'say "x"',
    "a\\b",
    "a\\",
    '\\"',
    "~/x",
    "ünï",
    "$a;b",
]


@pytest.mark.parametrize("path", [*ODD, "/data/it's [1], {x}=y (2)/"])
def test_the_quoted_form_of_any_path_is_read_letter_by_letter(path):
    (argument,) = shlex.split(quoted(f"dataset.path={path}"))
    assert OverridesParser.create().parse_override(argument).value() == path


def test_the_form_that_is_shown_works(tmp_path):
    refused = run(tmp_path, "model.path=/a (1)=b")
    (shown,) = shlex.split(refused.stderr.partition(" is written ")[2])
    assert run(tmp_path, shown).stdout.split() == ["ran", "zoomr"]


def test_a_user_error_is_the_only_line(tmp_path):
    outcome = run(tmp_path, "seed=7")
    assert outcome.returncode == 2
    assert outcome.stderr == "seed=7 is taken.\n"


def test_a_stage_is_a_function_of_its_config_too():
    @stage("eval")
    def double(config):
        """Twice the seed."""
        return 2 * config.seed

    assert double(OmegaConf.create({"seed": 4})) == 8
    assert double.__doc__ == "Twice the seed."


def test_a_bug_keeps_its_traceback(tmp_path):
    outcome = run(tmp_path, "seed=8")
    assert outcome.returncode == 1
    assert "Traceback" in outcome.stderr


def test_h07_a_comma_list_is_a_sweep_with_m_and_refused_without(tmp_path):
    outcome = run(tmp_path, "-m", "hydra/launcher=basic", "method=full,zoomr")
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.split() == ["ran", "full", "ran", "zoomr"]
    single = run(tmp_path, "method=full,zoomr")
    assert single.returncode == 2
    assert "Traceback" not in single.stderr


def test_h03_one_bad_cell_does_not_stop_the_sweep(tmp_path):
    outcome = run(tmp_path, "-m", "seed=7,1")
    assert outcome.returncode == 2
    assert outcome.stdout.split() == ["ran", "zoomr"]
    assert outcome.stderr.splitlines()[0] == "seed=7 is taken."
