"""The README's program runs as it stands, on the model in the repository."""

import re
import textwrap
from pathlib import Path

import zoomr

ROOT = Path(__file__).parents[2]


def test_the_readmes_program_runs():
    section = (ROOT / "README.md").read_text().split("## In a program of yours")[1].split("\n## ")[0]
    library, transformers = re.findall(r"(?:^    .*\n)+", section, re.MULTILINE)
    names = {"zoomr": zoomr}
    model = "train/micro_base"
    code = textwrap.dedent(library).replace("path-or-hub-id", str(ROOT / model)).replace("16384", "9")
    exec(code, names)
    [answer] = names["out"]
    assert answer.text and answer.stats.generated_tokens == len(answer.token_ids) <= 9
    found = eval(textwrap.dedent(transformers).replace("512", "9"), names)
    assert found[0, -len(answer.token_ids) :].tolist() == answer.token_ids
