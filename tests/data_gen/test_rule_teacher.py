"""A world's teacher: a real server that the stage starts and stops, and that never outlives it."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from data_gen.conversations import read_conversation
from data_gen.lengths import approximate_tokens
from data_gen.segmentation import Segmentation
from data_gen.sources import Drawn
from data_gen.summarize import summarize
from data_gen.teacher.served import endpoint, free_port
from data_gen.teacher.settings import Teacher
from data_gen.worlds import WORLDS
from pipeline.cli import CONFIGS
from tests.data_gen.conftest import prepared_run, rows, summarize_run
from zoomr.errors import UserError

ROOT = Path(__file__).parents[2]


@pytest.fixture
def local():
    settings = OmegaConf.to_container(teacher_of("ledger").teacher, resolve=True)
    return Teacher(**{key: value for key, value in settings.items() if key != "_target_"})


def teacher_of(world):
    """The settings of a world's teacher, with the dataset that names it."""
    teacher = OmegaConf.load(CONFIGS / "teacher" / "local.yaml")
    return OmegaConf.create({"dataset": {"name": world}, "teacher": teacher})


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_the_stage_starts_and_stops_its_teacher(configure, tmp_path, world):
    segmentation = Segmentation(merge=False, minimum=120, target=225, maximum=512)
    source = Drawn(world.name, train=4, validation=1, lengths=(4, 6), value="anywhere").rows()
    traces = [read_conversation(row, n, segmentation, approximate_tokens) for n, row in enumerate(source)]
    prepared_run(tmp_path / "runs", traces)
    cfg = OmegaConf.merge(configure(None), teacher_of(world.name))
    summarize(cfg)
    found = {(row["trace"], row["paragraph"]): row["summary"] for row in rows(summarize_run(cfg) / "summaries.jsonl")}
    expected = {(t.id, index): world.summarize(text) for t in traces for index, text in enumerate(t.paragraphs)}
    assert found == expected
    assert rows(summarize_run(cfg) / "failures.jsonl") == []


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_it_speaks_the_protocol(local, tmp_path):
    text = "Line A=74 A for ada: ke above zero.\nSo A for ada: ke#74 it is."
    messages = [{"role": "user", "content": f"<paragraph>\n{text}\n</paragraph>"}]
    with endpoint(local, tmp_path / "log") as url:
        status, body = post(f"{url}/chat/completions", {"model": local.model, "messages": messages})
        assert (status, body["object"], body["model"]) == (200, "chat.completion", local.model)
        assert body["choices"][0]["message"] == {"role": "assistant", "content": "ada: ke above zero"}
        assert body["choices"][0]["finish_reason"] == "stop"
        usage = body["usage"]
        assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"] > 0
        with urllib.request.urlopen(f"{url}/models") as response:
            assert [model["id"] for model in json.load(response)["data"]] == [local.model]
        assert post(f"{url}/chat/completions", {"model": "other", "messages": messages})[0] == 404
        assert post(f"{url}/chat/completions", {"messages": 3})[0] == 400
        assert post(f"{url}/other", {})[0] == 404
    with pytest.raises(urllib.error.URLError):
        post(f"{url}/chat/completions", {})


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's parent-death signal is Linux's")
def test_d10_a_killed_stage_leaves_no_server_behind(tmp_path):
    code = (
        "import sys, time; from pathlib import Path; from data_gen.teacher.served import endpoint\n"
        "from data_gen.teacher.settings import Teacher\n"
        "teacher = Teacher('x', 'ledger-rule', None, None, ('{python}', '-m', 'data_gen.teacher.rule_server', "
        "'{model}', '{port}'), 'text', {}, 1, None, None, 5, None, None)\n"
        "with endpoint(teacher, Path(sys.argv[1])) as url:\n    print(url, flush=True); time.sleep(60)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, tmp_path / "log"], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    url = process.stdout.readline().strip()
    urllib.request.urlopen(f"{url}/models").close()
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            urllib.request.urlopen(f"{url}/models").close()
        except OSError:
            return
        time.sleep(0.05)
    pytest.fail("the server is still there")


@pytest.mark.parametrize(
    ("serve", "sentence"),
    [
        (("{python}", "-c", "raise SystemExit(3)"), "teacher.serve ended with status 3"),
        (("{python}", "-c", "import time; time.sleep(9)"), "teacher.serve did not listen"),
        (("no-such-command",), "teacher.serve: the command no-such-command is not installed"),
    ],
)
def test_a_server_that_does_not_start_is_said(local, tmp_path, serve, sentence):
    teacher = Teacher(**(vars(local) | {"serve": serve}))
    with pytest.raises(UserError, match=sentence), endpoint(teacher, tmp_path / "log", patience=0.5):
        pass


def test_free_ports_differ_from_one_in_use(local, tmp_path):
    with endpoint(local, tmp_path / "log") as url:
        assert str(free_port()) not in url
