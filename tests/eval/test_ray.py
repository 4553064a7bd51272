"""A sweep on a local Ray cluster of two nodes. H02, H03."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir

ROOT = Path(__file__).resolve().parents[2]
JOB = """import ray
from pathlib import Path
from pipeline.cli import stage


@stage("eval")
def main(cfg):
    Path({out!r}, f"{{cfg.method.name}}-{{cfg.seed}}").write_text(ray.get_runtime_context().get_node_id())


if __name__ == "__main__":
    main()
"""


def test_the_launcher_leaves_the_clusters_memory_alone():
    with initialize_config_dir(str(ROOT / "configs"), version_base="1.3"):
        config = compose("eval", overrides=["hydra/launcher=ray_cluster"], return_hydra_config=True)
    # The launcher fills in what is missing: the setting has to be there, and empty.
    assert config.hydra.launcher.ray.init.object_store_memory is None
    assert "object_store_memory" in config.hydra.launcher.ray.init


@pytest.fixture
def cluster():
    pytest.importorskip("hydra_plugins.hydra_ray_launcher", reason="needs hydra-ray-launcher, see its config")
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "object_store_memory": 80 << 20}
    running = Cluster(initialize_head=True, head_node_args=node | {"include_dashboard": False})
    running.add_node(**node)
    yield running
    running.shutdown()


def test_a_sweep_runs_every_cell_on_a_cluster_that_already_runs(cluster, tmp_path):
    out, script = tmp_path / "out", tmp_path / "job.py"
    out.mkdir()
    script.write_text(JOB.format(out=str(out)))
    overrides = [f"hydra.launcher.ray.init.address={cluster.address}", "method=full,zoomr", "seed=0,1"]
    done = subprocess.run(
        [sys.executable, str(script), "-m", "hydra/launcher=ray_cluster", *overrides, f"paths.root={tmp_path}/runs"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    assert {path.name for path in out.iterdir()} == {"full-0", "full-1", "zoomr-0", "zoomr-1"}
