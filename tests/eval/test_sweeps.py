"""What a multirun covers, and what a killed or a mistaken one leaves. H01, H03, H05, H07, H10, H11."""

import itertools
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from hydra import compose, initialize_config_dir
from hydra.utils import get_class
from omegaconf import OmegaConf

from data_gen.benchmarks import Problem
from eval.cells import method_settings, requests
from eval.reporting.names import method_label
from eval.sweeps import jobs, planned_cells
from pipeline.cli import composing, stage
from tests.eval.conftest import data_file, json_lines

ROOT = Path(__file__).resolve().parents[2]
SWEEPS = sorted(path.stem for path in (ROOT / "configs" / "sweep").glob("*.yaml"))


def sweep_jobs(name):
    with composing():
        return jobs(["-m", f"sweep={name}"])


@pytest.mark.parametrize("name", SWEEPS)
def test_every_job_of_a_sweep_composes_and_its_policy_takes_what_it_gets(name):
    listed = sweep_jobs(name)
    with composing():
        for job in listed[:: max(1, len(listed) // 6)]:
            _, policy = method_settings(compose("eval", overrides=list(job)).method)
            get_class(policy.pop("_target_"))(**policy)


def test_h07_the_sweep_covers_every_pair_once_with_its_controls():
    methods = ("zoomr", "random_zoom", "recency_zoom")
    expected = {
        (f"method={method}", f"method.c={c}", f"method.k={k}", "sweep=c_k")
        for method, c, k in itertools.product(methods, range(1, 5), range(1, 5))
    }
    found = sweep_jobs("c_k")
    assert len(found) == len(set(found)) == len(expected)
    assert set(found) == expected


def test_every_option_that_the_paper_leaves_open_is_a_cell_of_its_own():
    found = planned_cells(["eval.generate -m sweep=ambiguities"], [])
    texts = {path.stem: path.read_text() for path in (ROOT / "configs" / "option").glob("*.yaml")}
    options = {name for name, text in texts.items() if "(ours" not in text} - {"keep_prompt"}
    assert len(found) == len(sweep_jobs("ambiguities")) == len(options)


def test_a_baseline_with_the_prompt_kept_is_the_baseline_with_one_setting_changed():
    plain, kept = planned_cells(["eval.generate method=h2o", "eval.generate method=h2o option=keep_prompt"], [])
    assert OmegaConf.merge(plain.config.method, {"keep_prompt": True}) == kept.config.method
    assert method_label(*method_settings(kept.config.method)) == "h2o with prompt"


def test_the_method_that_sets_the_budget_comes_first():
    for name in ("methods", "table1"):
        params = yaml.safe_load((ROOT / "configs" / "sweep" / f"{name}.yaml").read_text())
        assert params["method"].startswith("zoomr,")


def test_the_paper_preset_asks_as_its_training_data_did():
    rows = json_lines(data_file("reasoning_traces_sample.jsonl"))
    with initialize_config_dir(str(ROOT / "configs"), version_base="1.3"):
        config = compose("eval", overrides=["preset=paper"])
    assert {row["system"] for row in rows} == {config.system_prompt}
    asked = {row["conversations"][0]["value"].split("}.")[0] for row in rows}
    assert config.benchmark.prompt.split("}.")[0] in asked


def test_h10_the_array_on_slurm_needs_no_parent_and_covers_every_sample():
    line = (ROOT / "configs/hydra/launcher/slurm.yaml").read_text().splitlines()[1]
    match = re.search(r"sbatch --array=1-(\d+) .*--wrap 'python -m eval.generate (.*?)'", line)
    assert match, line
    problems = [Problem(f"p{n}", "question", "1") for n in range(20)]
    found = []
    for task in range(1, int(match[1]) + 1):
        overrides = match[2].replace("$SLURM_ARRAY_TASK_ID", str(task)).split()
        with initialize_config_dir(str(ROOT / "configs"), version_base="1.3"):
            found += [request.id for request in requests(problems, 1, 0, compose("eval", overrides=overrides).shard)]
    assert sorted(found) == sorted(problem.id + "#0" for problem in problems)


@pytest.mark.parametrize("launcher", ["pool", "slurm", "local_jobs"])
def test_launchers_compose_and_say_how_to_call_them(launcher):
    path = ROOT / "configs" / "hydra" / "launcher" / f"{launcher}.yaml"
    assert f"hydra/launcher={launcher}" in path.read_text().splitlines()[0]
    with initialize_config_dir(str(ROOT / "configs"), version_base="1.3"):
        config = compose("eval", overrides=[f"hydra/launcher={launcher}"], return_hydra_config=True)
    assert config.hydra.launcher._target_.startswith("hydra_plugins.")


@pytest.mark.parametrize("chdir", ["true", "false"])
def test_h05_relative_paths_are_those_of_the_launch_directory(chdir, tmp_path, monkeypatch):
    seen = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["job.py", f"hydra.job.chdir={chdir}", "paths.root=elsewhere"])
    stage("eval")(lambda cfg: seen.append(Path.cwd()))()
    assert seen == [tmp_path]


def test_h01_hydra_and_the_latex_grader_share_one_process():
    code = (
        "import warnings; warnings.simplefilter('error', UserWarning)\n"
        "from hydra import compose, initialize_config_dir\n"
        f"with initialize_config_dir({str(ROOT / 'configs')!r}, version_base='1.3'): compose('eval', ['method.c=3'])\n"
        "from eval.grading.symbolic import symbolic_verdict\n"
        "print(symbolic_verdict('\\\\frac{1}{2}', '0.5'))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip() == "True", done.stderr
    assert "ANTLR" not in done.stderr


def test_h11_a_terminated_stage_keeps_its_rows_and_has_an_exit_code_of_its_own(tmp_path):
    script = tmp_path / "stage.py"
    script.write_text(
        "import sys, time\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "from pipeline import AppendLog\n"
        "with AppendLog('rows.jsonl') as log:\n"
        "    for n in range(1000):\n"
        "        log.append({'id': n}); time.sleep(0.01)\n"
    )
    process = subprocess.Popen([sys.executable, str(script)], cwd=tmp_path)
    rows = tmp_path / "rows.jsonl"
    while not rows.exists() or rows.stat().st_size < 100:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=20) == -signal.SIGTERM
    assert rows.read_text().endswith("}\n")
