"""Every YAML composes, every `_target_` exists and takes what the YAML gives it."""

import inspect
import re
from pathlib import Path

import hydra
import pytest
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

from eval.cells import method_settings
from pipeline import read_rows
from pipeline.cli import CONFIGS

ROOTS = sorted({path.stem for path in CONFIGS.glob("*.yaml")} - {"base"})
GROUPS = ["preset", "model", "teacher", "dataset", "benchmark", "method", "generation", "tracker"]
CHOICES = [(group, path.stem) for group in GROUPS for path in sorted((CONFIGS / group).glob("*.yaml"))]
YAMLS = [path for path in sorted(CONFIGS.rglob("*.yaml")) if "accelerate" not in path.parts]


def compose(root, *overrides):
    with hydra.initialize_config_dir(str(CONFIGS), version_base="1.3"):
        return hydra.compose(root, overrides=list(overrides))


def targets(node):
    """All nodes below `node` that name a `_target_`."""
    if isinstance(node, DictConfig):
        if "_target_" in node:
            yield node
        for key in node:
            if not OmegaConf.is_missing(node, key):
                yield from targets(node[key])


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("preset", [choice for group, choice in CHOICES if group == "preset"])
def test_every_root_composes_with_every_preset(root, preset):
    config = compose(root, f"preset={preset}")
    OmegaConf.to_container(config, resolve=True)
    assert preset.startswith(config.preset.name)


@pytest.mark.parametrize(("group", "choice"), CHOICES)
def test_every_choice_composes_and_its_objects_can_be_made(group, choice):
    config = compose("eval", f"{group}={choice}")
    OmegaConf.to_container(config, resolve=True)
    for node in targets(config):
        target = hydra.utils.get_object(node["_target_"])
        ours = {"_target_", "_partial_"} | ({"name", "show"} if node._key() in ("method", "policy") else set())
        arguments = set(node) - ours
        parameters = inspect.signature(target).parameters
        assert arguments <= parameters.keys(), node["_target_"]


@pytest.mark.parametrize("choice", [choice for group, choice in CHOICES if group == "method"])
def test_every_method_instantiates(choice):
    _, settings = method_settings(compose("eval", f"method={choice}").method)
    assert callable(instantiate(settings).start)


@pytest.mark.parametrize("path", YAMLS, ids=lambda path: path.relative_to(CONFIGS).as_posix())
def test_every_yaml_is_short_and_says_how_to_call_it(path):
    lines = path.read_text().splitlines()
    head = " ".join(lines[:3])
    assert len(lines) <= 80
    assert lines[0].startswith("#")
    assert re.search(r"python -m|make |What every stage knows", head)


def test_k14_paper_values_and_assumptions_name_their_source():
    train = (CONFIGS / "train.yaml").read_text()
    for setting in (
        "epochs: 3",
        "learning_rate: 1e-4",
        "batch_size: 1",
        "accumulation: 4",
        "max_length: 16384",
        "r: 16",
        "alpha: 32",
    ):
        assert re.search(rf"^\s+{setting}\b.*# .*paper: A\.1", train, re.MULTILINE), setting
    zoomr = (CONFIGS / "method" / "zoomr.yaml").read_text()
    for setting in ("c: 2", "k: 2"):
        assert re.search(rf"^\s*{setting}\b.*# .*paper", zoomr, re.MULTILINE), setting


def test_presets_override_what_roots_say():
    assert compose("eval", "preset=laptop").benchmark.name == "stories"
    assert compose("eval", "preset=micro").generation.window == 80
    assert compose("eval", "preset=micro", "generation.window=32").generation.window == 32
    assert compose("eval", "preset=micro", "model=smollm2").model.name == "smollm2-135m"


def test_local_copies_take_the_place_of_the_hub():
    copies = ["files=local", "files.directory=data"]
    config = compose("data_gen", "preset=laptop_traces", "benchmark=gsm8k", *copies)
    assert config.dataset.source.path == "data/reasoning_traces_sample.jsonl"
    assert config.benchmark.path == "data/gsm8k_test.jsonl"
    assert config.build.benchmark_files.math500 == "data/math500.jsonl"
    config = compose("data_gen", "preset=laptop_traces", "benchmark=gsm8k")
    assert config.dataset.source.path == "bespokelabs/Bespoke-Stratos-17k"
    assert config.benchmark.path is None


TRACES = Path(__file__).parents[3] / "shared" / "data" / "reasoning_traces_sample.jsonl"


@pytest.mark.skipif(not TRACES.exists(), reason=f"needs {TRACES}")
def test_benchmarks_ask_with_the_system_turn_of_the_training_data():
    asked = compose("eval", "preset=paper").system_prompt
    assert {row["system"] for row in read_rows(TRACES)} == {asked}
