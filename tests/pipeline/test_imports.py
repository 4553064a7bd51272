"""Who may import whom, in modules and in the strings of configs/: each package those before it in the list alone."""

import ast
import re

import pytest

from pipeline.cli import CONFIGS

ROOT = CONFIGS.parent
PACKAGES = ("zoomr", "pipeline", "data_gen", "train", "eval")
# The first package that makes the objects which a group or a root of configs/ names.
MADE_BY = {
    "dataset": "data_gen",
    "teacher": "data_gen",
    "benchmark": "data_gen",
    "model": "data_gen",  # fetched for its tokenizer
    "tracker": "train",
    "method": "train",
    "data_gen.yaml": "data_gen",
    "train.yaml": "train",
}
MODULES = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]


def imported(path):
    """The packages of ours that a module names: in imports at any depth, and in strings such as a `_target_`."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").split(".")[0])
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            named = re.fullmatch(rf"({'|'.join(PACKAGES)})(\.\w+)*\.[A-Z]\w+", node.value)
            found |= {named[1]} if named else set()
    return found & set(PACKAGES)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_module_imports_its_package_and_those_before_it(path):
    package = path.relative_to(ROOT).parts[0]
    assert imported(path) <= set(PACKAGES[: PACKAGES.index(package) + 1])


@pytest.mark.parametrize("path", sorted(CONFIGS.rglob("*.yaml")), ids=lambda path: path.relative_to(CONFIGS).as_posix())
def test_a_setting_names_objects_that_whoever_makes_them_may_import(path):
    maker = MADE_BY.get(path.relative_to(CONFIGS).parts[0], "eval")
    named = set(re.findall(r"_target_: *(\w+)\.", path.read_text())) & set(PACKAGES)
    assert named <= set(PACKAGES[: PACKAGES.index(maker) + 1])
