"""The README's numbers are those of results/."""

import subprocess
from pathlib import Path

import pytest

from eval.readme import results_block, updated

ROOT = Path(__file__).parents[2]


def changed(path):
    """Whether a path differs from what is committed."""
    return subprocess.run(["git", "diff", "--quiet", "HEAD", "--", path], cwd=ROOT).returncode == 1


def test_the_results_block_is_what_results_say():
    if changed("results") and not changed("README.md"):
        pytest.skip("results/ hold an outcome of this machine; the README tells the committed one")
    readme = (ROOT / "README.md").read_text()
    assert updated(readme, results_block(ROOT / "results")) == readme
