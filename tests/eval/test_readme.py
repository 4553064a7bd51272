"""The README's numbers are those of results/."""

from pathlib import Path

from eval.readme import results_block, updated

ROOT = Path(__file__).parents[2]


def test_the_results_block_is_what_results_say():
    readme = (ROOT / "README.md").read_text()
    assert updated(readme, results_block(ROOT / "results")) == readme
