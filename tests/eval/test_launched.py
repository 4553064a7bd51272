"""The local executor of the Slurm launcher and the process pool run a sweep of cells. H02, H03."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STAGE = """from pathlib import Path
from pipeline.cli import stage


@stage("eval")
def main(cfg):
    Path({out!r}, f"{{cfg.method.name}}-{{cfg.seed}}").touch()


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize("launcher", ["pool", "local_jobs"])
def test_a_sweep_runs_every_cell(tmp_path, launcher):
    out = tmp_path / "out"
    out.mkdir()
    script = tmp_path / "job.py"
    script.write_text(STAGE.format(out=str(out)))
    command = [sys.executable, str(script), "-m", f"hydra/launcher={launcher}", "method=full,zoomr", "seed=0,1"]
    # A stage is started in the checkout, where its workers find the packages; here they find them by the variable.
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command.append(f"paths.root={tmp_path}/runs")
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in out.iterdir()} == {"full-0", "full-1", "zoomr-0", "zoomr-1"}
