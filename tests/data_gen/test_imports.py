"""What data_gen is made of: the library and the stages' machinery, and no other stage, in strings either."""

import ast
import re

import pytest

from pipeline.cli import CONFIGS

PACKAGE = CONFIGS.parent / "data_gen"
YAMLS = [
    CONFIGS / "data_gen.yaml",
    *(path for name in ("benchmark", "dataset", "teacher") for path in (CONFIGS / name).glob("*")),
]


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_no_module_imports_another_stage(path):
    modules = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            modules |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules.add((node.module or "").split(".")[0])
    assert not modules & {"train", "eval"}


@pytest.mark.parametrize("path", sorted(YAMLS), ids=lambda path: path.name)
def test_no_setting_names_an_object_of_another_stage(path):
    targets = re.findall(r"_target_: *([a-z_]+)\.", path.read_text())
    assert set(targets) <= {"data_gen"}
