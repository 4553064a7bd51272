"""A preset's stages in order: what is run, with what, and what a failure does."""

import os
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import pytest

from pipeline import extras
from pipeline.__main__ import commands, root_of, run
from pipeline.cli import CONFIGS, choices
from tests.configs.test_configs import compose
from zoomr.errors import UserError

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("preset", choices("preset"))
def test_every_preset_can_be_run_and_its_stages_exist(preset, capsys):
    assert run([f"preset={preset}", "dry_run=true", "install=true", "limit=3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    stages = compose("pipeline", f"preset={preset}").preset.stages
    assert len(lines) == len(stages)
    for line, stage in zip(lines, stages, strict=True):
        module = stage.split()[0]
        assert f"python -m {module} " in line and line.count(" preset=") == 1 and line.endswith(" limit=3")
        path = Path(import_module(module).__file__)
        code = path.with_name("__main__.py") if path.name == "__init__.py" else path
        assert f'stage("{root_of(module)}")' in code.read_text()


def test_overrides_go_to_the_stages_that_know_them_and_come_before_their_own():
    stages = ["train.sft", "eval.generate -m sweep=methods limit=9", "eval.report"]
    train, generate, report = commands(stages, ["limit=3", "lora.r=4", "batch_size=7", "preset=laptop"])
    assert train == ["-m", "train.sft", "limit=3", "lora.r=4", "batch_size=7", "preset=laptop"]
    assert generate == ["-m", "eval.generate", "-m", "sweep=methods", "limit=3", "batch_size=7", "preset=laptop"]
    assert report[:3] == ["-m", "eval.report", "limit=3"] and "lora.r=4" not in report


def test_a_setting_that_a_group_brings_needs_no_order():
    stages = ["data_gen.prepare", "eval.generate"]
    for line in commands(stages, ["files.directory=d", "files=local", "preset=laptop"]):
        assert {"files.directory=d", "files=local"} <= set(line)


@pytest.mark.parametrize(
    ("override", "sentence"),
    {
        "sft.max_step=3": r"Unknown setting sft\.max_step\. Did you mean sft\.max_steps\?",
        "method=zomr": r"Unknown choice method=zomr\. Did you mean zoomr\?",
        "only=evil": r"only=evil: no stage of this preset",
    }.items(),
)
def test_what_no_stage_knows_is_one_sentence(override, sentence):
    with pytest.raises(UserError, match=sentence):
        run(["dry_run=true", override])


def test_only_takes_some_of_the_stages(capsys):
    run(["only=data_gen", "dry_run=true"])
    assert [line.split()[3] for line in capsys.readouterr().out.splitlines()] == [
        "data_gen.prepare",
        "data_gen.summarize",
        "data_gen.build",
    ]


def test_an_extra_that_is_lacking_is_named(monkeypatch):
    assert extras.missing(["dev"]) == []
    monkeypatch.setattr("pipeline.__main__.missing", lambda names: [f"package-of-{name}" for name in names])
    with pytest.raises(UserError, match=r"needs package-of-serving: add install=true"):
        run(["preset=laptop", "dry_run=true"])


def test_a_requirement_counts_with_the_extras_it_asks_for():
    assert extras.installed(extras.Requirement("pytest>=8"))
    assert not extras.installed(extras.Requirement("pytest>=99"))
    assert not extras.installed(extras.Requirement("no-such-package"))


STAGES = """
import sys, time
from pathlib import Path
def job(name, code=0, wait=0):
    Path(name).write_text("here")
    time.sleep(wait)
    sys.exit(code)
"""


@pytest.fixture
def scripted(tmp_path, monkeypatch):
    """Replaces the stages of the preset by small programs; returns a function that runs them as a process."""

    def start(*programs):
        for number, program in enumerate(programs):
            (tmp_path / f"stage{number}.py").write_text(f"{STAGES}\n{program}\n")
        code = (
            "import sys, pipeline.__main__ as m\n"
            f"own = {[['-m', f'stage{n}'] for n in range(len(programs))]!r}\n"
            "m.commands = lambda stages, overrides: own + [['-c', '']] * (len(stages) - len(own))\n"
            "sys.exit(m.run([]))\n"
        )
        environment = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}
        return subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env=environment, text=True)

    return start


def test_the_first_stage_that_fails_ends_the_run_with_its_exit_code(scripted, tmp_path):
    assert scripted("job('a')", "job('b', code=7)", "job('c')").wait(60) == 7
    assert (tmp_path / "b").exists() and not (tmp_path / "c").exists()


def test_a_stage_that_a_signal_ends_is_told_as_shells_tell_it(scripted):
    assert scripted("import os; os.kill(os.getpid(), 9)").wait(60) == 128 + signal.SIGKILL


@pytest.mark.skipif(sys.platform != "linux", reason="asks the Linux kernel")
def test_a_killed_run_leaves_no_stage_behind(scripted, tmp_path):
    process = scripted("job('a', wait=600)", "job('b')")
    deadline = time.monotonic() + 60
    while not (tmp_path / "a").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.kill()
    process.wait()
    # other runs of these tests may have a stage of that name
    while any(str(tmp_path).encode() in read(path) for path in Path("/proc").glob("[0-9]*/environ")):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def read(path):
    try:
        return path.read_bytes()
    except OSError:  # it has ended meanwhile
        return b""


def test_the_makefile_knows_no_preset_by_its_stages():
    makefile = (ROOT / "Makefile").read_text()
    assert "grep -s" not in makefile and "wildcard" not in makefile
    assert not [path.stem for path in (CONFIGS / "sweep").glob("*.yaml") if f"sweep={path.stem}" in makefile]
