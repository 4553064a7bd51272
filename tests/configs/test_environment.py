"""One environment, said three times: pyproject.toml, constraints.txt, environment.yml."""

import re
import tomllib
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PINNED = {
    canonicalize_name(name): version
    for name, version in re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
}
GPU_ONLY = ("flash-attn", "vllm", "bitsandbytes", "deepspeed", "triton", "nvidia")


def requirements():
    extras = [line for lines in PROJECT["optional-dependencies"].values() for line in lines]
    return [Requirement(line) for line in [*PROJECT["dependencies"], *extras] if not line.startswith("zoomr[")]


def test_every_requirement_is_pinned_to_a_version_it_allows():
    for requirement in requirements():
        version = PINNED[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), requirement


def test_every_line_of_the_constraints_is_a_pin():
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        assert re.fullmatch(r"[\w.-]+==[\w.]+", line), line


def test_conda_installs_the_same_as_pip():
    conda = yaml.safe_load((ROOT / "environment.yml").read_text())
    pip = next(entry["pip"] for entry in conda["dependencies"] if isinstance(entry, dict))
    assert pip == ["--constraint constraints.txt", "--editable .[dev]"]
    python = next(entry for entry in conda["dependencies"] if str(entry).startswith("python="))
    assert PROJECT["requires-python"] == f">={python.removeprefix('python=')}"
    makefile = (ROOT / "Makefile").read_text()
    assert '--constraint constraints.txt --editable ".[dev]"' in makefile


def test_h20_nothing_that_needs_a_gpu_is_installed():
    for requirement in requirements():
        assert not requirement.name.startswith(GPU_ONLY)
    assert not [name for name in PINNED if name.startswith(GPU_ONLY)]


def test_h01_hydra_and_the_grader_share_one_antlr():
    assert PINNED["antlr4-python3-runtime"].startswith("4.9")
