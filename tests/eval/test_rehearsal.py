"""The paper preset in small: every stage, and every cell that its plan lists, on random models of its architectures.

Only what makes it large is overridden: the weights, the number of rows, steps and problems, and the lengths. Token
limits are divided by 512, so that the cells with a limit of 32K stay apart from those with 16K.
"""

import csv
import json
import random
import sys
from functools import partial

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

import data_gen.build
import data_gen.prepare
import data_gen.summarize
import eval.report
import train.export
import train.sft
from eval.generate import generate_cell
from eval.score import score_cells
from eval.sweeps import planned_cells
from pipeline import read_manifest, resolve_run
from pipeline.cli import CONFIGS
from tests.data_gen.scripted_server import completion, serve
from tests.train.tiny import R1, save_base
from train.tracking import read_figures

SHRINK = 512
ARCHITECTURES = {
    "r1_llama8b": {"family": "llama", "tied": False},
    "r1_qwen7b": {"family": "qwen2", "tied": False, "spare_rows": 9},
}
WORDS = "two three five seven and plus so that then we take it from there again with more care".split()
FIELDS = {
    "math500": lambda n: {"unique_id": f"m{n}", "answer": str(n)},
    "aime2025": lambda n: {"id": f"a{n}", "answer": str(n)},
    "gsm8k": lambda n: {"answer": f"work #### {n}", "question": f"How much is gsm8k number {n}?"},
    "gpqa_diamond": lambda n: (
        {"Record ID": f"g{n}", "Question": f"Which is {n}?", "Correct Answer": f"{n}"}
        | {f"Incorrect Answer {i}": f"{n + i}" for i in (1, 2, 3)}
    ),
}


def composed(root, *overrides):
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        return compose(root, overrides=["preset=paper", *overrides])


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def write_benchmarks(root):
    """Made-up problems in the public files' form and number."""
    found = {}
    for name, fields in FIELDS.items():
        count = OmegaConf.load(CONFIGS / "benchmark" / f"{name}.yaml").count
        rows = ({"problem": f"What is {name} number {n}?"} | fields(n) for n in range(count))
        found[name] = write_lines(root / f"{name}.jsonl", rows)
    return found


def write_traces(root):
    """Rows in the training data's form, their thoughts of a few paragraphs."""
    rng = random.Random(0)
    system = composed("eval").system_prompt
    rows = []
    for n in range(12):
        thought = "\n\n".join(" ".join(rng.choices(WORDS, k=60)) + "." for _ in range(3))
        answer = f"<|begin_of_solution|>\n\n\\boxed{{{n}}}\n\n<|end_of_solution|>"
        turns = [
            {"from": "user", "value": f"Return your final response within \\boxed{{}}. What is {n} times {n}?"},
            {"from": "assistant", "value": f"<|begin_of_thought|>\n\n{thought}\n\n<|end_of_thought|>\n\n{answer}"},
        ]
        rows.append({"system": system, "conversations": turns})
    return write_lines(root / "traces.jsonl", rows)


@pytest.fixture(scope="module", params=list(ARCHITECTURES))
def rehearsed(request, tmp_path_factory):
    """Run it all; return the root, the cells and the evaluation's configuration."""
    root = tmp_path_factory.mktemp(request.param)
    base = save_base(root / "base", template=R1, **ARCHITECTURES[request.param])
    files = write_benchmarks(root)
    common = [f"model={request.param}", f"model.path={base}", "tracker=disabled"]
    common += [f"paths.root={root}/runs", f"paths.results={root}/results"]
    known = [f"build.benchmark_files.{name}={path}" for name, path in files.items()]

    def reply(call):
        return completion(json.dumps({"results": "note on " + " ".join(call.paragraph.split()[:3])}))

    with pytest.MonkeyPatch.context() as patch, serve(reply) as teacher:

        def run(main, *overrides):
            patch.setattr(sys, "argv", ["stage", "preset=paper", *common, *overrides])
            main()

        local = f"dataset.path={write_traces(root)}"
        run(data_gen.prepare.prepare, local)
        run(data_gen.summarize.summarize, local, f"teacher.base_url={teacher.url}")
        run(data_gen.build.build, local, "build.validation_share=0.3", *known)
        run(train.sft.main, "sft.max_steps=2", "sft.log_every=1", "sft.adherence.max_new_tokens=8")
        run(train.export.main)

    cfg = composed("eval", *common, "limit=1", "traces=0", "device=cpu", "generation.window=16")
    other = "model=r1_qwen7b"  # named by the stages that are not for the preset's own model
    stages = [line for line in cfg.preset.stages if (other in line) == (request.param in other)]
    here = planned_cells([line.replace(other, "") for line in stages], ["preset=paper", *common])
    for cell in here:
        generate_cell(small(cell, files))
    score_cells(cfg)
    short = f"generation.max_new_tokens={cfg.generation.max_new_tokens // SHRINK}"
    eval.report.build(composed("report", *common, "limit=1", "benchmark=aime2025", short))
    return root, here, cfg


def small(cell, files):
    """The configuration of a cell, shrunk."""
    cfg = OmegaConf.create(OmegaConf.to_container(cell.config))
    cfg.limit, cfg.traces, cfg.device, cfg.generation.window = 1, 0, "cpu", 16
    cfg.generation.max_new_tokens //= SHRINK
    cfg.benchmark.path = str(files[cfg.benchmark.name])
    return cfg


def test_every_cell_of_the_plan_is_generated_and_scored(rehearsed):
    root, planned, _ = rehearsed
    generated = [read_manifest(path.parent) for path in (root / "runs/paper/generate").glob("*/manifest.json")]
    scored = [json.loads(path.read_text()) for path in (root / "runs/paper/score").glob("*/cell.json")]
    assert len(generated) == len(scored) == len(planned)
    assert all(manifest["ended"] for manifest in generated)
    assert all(cell["complete"] and cell["n_samples"] == cell["expected_samples"] for cell in scored)
    assert sum(sum(cell["statuses"].values()) for cell in scored) == sum(cell["n_samples"] for cell in scored)


def test_baselines_without_fine_tuning_get_the_fine_tuned_models_budget(rehearsed):
    root, _, _ = rehearsed
    budgets = {}
    for path in (root / "runs/paper/generate").glob("*/manifest.json"):
        settings = read_manifest(path.parent)["settings"]
        if settings.get("budget") and settings["generation"]["max_new_tokens"] == 16384 // SHRINK:
            key = settings["benchmark"]["name"]
            budgets.setdefault(key, {}).setdefault(settings["model"]["checkpoint"], set()).add(settings["budget"])
    assert set(budgets) == {"math500", "aime2025", "gpqa_diamond"}
    assert all(found["base"] == found["export"] and len(found["base"]) == 1 for found in budgets.values())


def test_evaluation_asks_with_the_tokens_that_training_saw(rehearsed):
    """The same system turn and template: the ids agree up to the problem."""
    from datasets import load_from_disk

    from zoomr.loading import load_tokenizer
    from zoomr.prompts import render_prompt

    root, _, cfg = rehearsed
    directory = partial(resolve_run, setting="", command="")
    trained = load_from_disk(str(directory(root / "runs/paper/build/latest") / "train"))[0]
    tokenizer = load_tokenizer(directory(root / "runs/paper/export/latest") / "merged")
    asked = render_prompt(tokenizer, cfg.system_prompt, cfg.benchmark.prompt.replace("{problem}", "What is"))
    shared = next(n for n, (a, b) in enumerate(zip(asked, trained["input_ids"], strict=False)) if a != b)
    assert tokenizer.decode(asked[:shared]).endswith("\\boxed{}. What is")


def test_training_follows_its_validation_and_the_format(rehearsed):
    root, _, _ = rehearsed
    (run,) = [path.parent for path in (root / "runs/paper/sft").glob("*/manifest.json")]
    logged = set().union(*read_figures(run))
    assert {"train/loss", "train/tokens_per_s", "eval/loss", "eval/balanced", "eval/summaries_per_1k"} <= logged


def test_the_report_lists_every_cell(rehearsed):
    root, planned, _ = rehearsed
    assert len(list(csv.DictReader((root / "results/cells.csv").open()))) == len(planned)
    assert (root / "results/report.html").exists()
