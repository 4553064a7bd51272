"""Problems, their prompts and their checks. E16, and what a person sees when a file is wrong."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hydra.utils import instantiate
from omegaconf import OmegaConf

from data_gen.benchmarks import ChoiceTable, DrawnBenchmark, MathTable, checksum
from tests.data_gen.conftest import data_file
from zoomr.errors import UserError

CONFIGS = Path(__file__).resolve().parents[2] / "configs" / "benchmark"


def benchmark(name: str, path: Path | None):
    config = OmegaConf.load(CONFIGS / f"{name}.yaml")
    config.path = None if path is None else str(path)
    return instantiate(config)


@pytest.mark.parametrize(
    ("name", "file", "count"),
    [
        ("math500", "math500", 500),
        ("aime2025", "aime2025", 30),
        ("aime2024", "aime2024", 30),
        ("gsm8k", "gsm8k_test", 1319),
    ],
)
def test_e16_local_copies_have_their_size_and_a_stable_checksum(name, file, count):
    problems = benchmark(name, data_file(f"{file}.jsonl")).load()
    assert len(problems) == len({problem.id for problem in problems}) == count
    assert checksum(problems) == checksum(benchmark(name, data_file(f"{file}.jsonl")).load())
    assert checksum(problems) != checksum(problems[:-1])
    assert all("\\boxed{}" in problem.user and problem.gold for problem in problems)


def test_gsm8k_golds_are_the_numbers_after_the_mark():
    assert benchmark("gsm8k", data_file("gsm8k_test.jsonl")).load()[0].gold == "18"


def math_table(path: Path, **options) -> MathTable:
    fields = {"problem": "problem", "gold": "answer", "id": "id", "prompt": "{problem}"}
    return MathTable(
        name="t", answer="integer", hub="x/y", revision="0", split="test", path=str(path), **fields, **options
    )


@pytest.mark.parametrize(
    ("rows", "count", "sentence"),
    [
        ([], None, "holds no problems"),
        ([{"id": "a", "problem": "p"}], None, "row 1 has no field 'answer'"),
        ([{"id": "a", "problem": "p", "answer": "1"}] * 2, None, "same id"),
        ([{"id": "a", "problem": "p", "answer": "1"}], 30, "has 30 problems, this copy has 1"),
        ([{"id": "a", "problem": "p", "answer": "x"}], None, "not an integer"),
        ([{"id": "a", "problem": "p", "answer": " "}], None, "has no answer"),
    ],
)
def test_e16_a_damaged_copy_is_refused_in_one_sentence(tmp_path, rows, count, sentence):
    path = tmp_path / "problems.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(UserError, match=sentence) as caught:
        math_table(path, count=count).load()
    assert "benchmark.path" in str(caught.value)
    assert "\n" not in str(caught.value)


ROW = {"id": "a", "problem": "one\u2028two\u0085three", "answer": 4}


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + json.dumps(ROW, ensure_ascii=False).encode(),
        json.dumps(ROW, ensure_ascii=False).encode() + b"\r\n",
        json.dumps([ROW], ensure_ascii=False, indent=1).encode(),
    ],
    ids=["byte order mark", "crlf", "array"],
)
def test_n17_n19_a_benchmark_is_read_in_every_dress(tmp_path, content):
    (tmp_path / "a.json").write_bytes(content)
    (problem,) = math_table(tmp_path / "a.json").load()
    assert (problem.user, problem.gold) == (ROW["problem"], "4")


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ({**ROW, "answer": None}, "row 1 has None in 'answer': text or a number is needed"),
        ({**ROW, "answer": ["4"]}, "row 1 has ['4'] in 'answer'"),
        ({**ROW, "answer": True}, "row 1 has True in 'answer'"),
        ({**ROW, "problem": {"text": "p"}}, "row 1 has {'text': 'p'} in 'problem'"),
        ({**ROW, "problem": "\ud835"}, "row 1 has half of a surrogate pair in 'problem'"),
        ("a", "line 1 is no object"),
    ],
)
def test_n11_n12_n17_a_row_of_another_shape_is_one_sentence(tmp_path, row, sentence):
    (tmp_path / "a.jsonl").write_text(json.dumps(row) + "\n" + json.dumps(ROW))
    with pytest.raises(UserError, match="^benchmark.path") as error:
        math_table(tmp_path / "a.jsonl").load()
    assert sentence in str(error.value)


def test_n19_another_encoding_is_one_sentence(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(json.dumps({**ROW, "problem": "é"}, ensure_ascii=False).encode("latin-1"))
    with pytest.raises(UserError, match="^benchmark.path=.*line 1 is not UTF-8"):
        math_table(tmp_path / "a.jsonl").load()


def test_missing_and_broken_files_name_the_setting(tmp_path):
    with pytest.raises(UserError, match="benchmark.path=.*does not exist"):
        math_table(tmp_path / "none.jsonl").load()
    (tmp_path / "bad.jsonl").write_text(json.dumps(ROW) + "\nnot json\n")
    with pytest.raises(UserError, match="line 2 is not JSON"):
        math_table(tmp_path / "bad.jsonl").load()


def test_offline_hub_names_the_option(monkeypatch):
    import datasets

    def unreachable(*args, **options):
        raise ConnectionError("no network")

    monkeypatch.setattr(datasets, "load_dataset", unreachable)
    with pytest.raises(UserError, match="benchmark.path"):
        benchmark("math500", None).load()


def test_choices_are_shuffled_by_id_alone(tmp_path):
    rows = [
        {"Record ID": f"r{n}", "Question": f"Q{n}?", "Correct Answer": "right"}
        | {f"Incorrect Answer {i}": f"wrong {i}" for i in (1, 2, 3)}
        for n in range(60)
    ]
    (tmp_path / "gpqa.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = OmegaConf.load(CONFIGS / "gpqa_diamond.yaml")
    config.update({"path": str(tmp_path / "gpqa.jsonl"), "count": None})
    problems: list = instantiate(config).load()
    assert isinstance(instantiate(config), ChoiceTable)
    assert {problem.gold for problem in problems} == set("ABCD")
    for problem in problems:
        assert f"({problem.gold}) right" in problem.user
    (tmp_path / "gpqa.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[::-1]))
    assert {p.id: p.user for p in instantiate(config).load()} == {p.id: p.user for p in problems}


def test_ledger_is_drawn_or_read(tmp_path):
    drawn = DrawnBenchmark("ledger", "ledger", [4, 5], 6).load()
    assert len(drawn) == 6
    path = tmp_path / "ledger.jsonl"
    rows = [{"id": p.id, "user": p.user, "system": p.system, "answer": p.gold} for p in drawn]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    read = DrawnBenchmark("ledger", "ledger", [4, 5], 6, path=str(path)).load()
    assert read == [replace(problem, needs=None) for problem in drawn]
