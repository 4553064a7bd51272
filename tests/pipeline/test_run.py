"""Run directories: named by what they compute, finished when the manifest says so."""

import errno
import json
import re
from contextlib import closing

import pytest

from pipeline import Run, files, fingerprint, read_manifest, resolve_run, write_atomic
from zoomr.errors import UserError


def open_run(root, settings=None, inputs=None, label="demo"):
    return Run.open(root, "build", label, settings or {"a": 1}, inputs or {}, {"a": 1}, "make train")


def test_the_directory_follows_settings_and_inputs_alone(tmp_path):
    source = tmp_path / "in.txt"
    source.write_text("one")
    first = open_run(tmp_path, inputs={"source": source})
    first.finish({}, [])
    assert open_run(tmp_path, inputs={"source": source}).dir == first.dir
    assert open_run(tmp_path, settings={"a": 2}, inputs={"source": source}).dir != first.dir
    source.write_text("two")
    assert open_run(tmp_path, inputs={"source": source}).dir != first.dir


def test_directory_names_need_no_quoting(tmp_path):
    name = open_run(tmp_path, settings={"c": [1, 2], "text": "a=b, {c} [d]"}).dir.name
    assert re.fullmatch(r"[\w.-]+", name)


def test_a_finished_run_says_so_and_is_the_latest(tmp_path, capsys):
    run = open_run(tmp_path)
    (run.dir / "out.txt").write_text("x")
    assert not run.complete
    run.finish({"rows": 3}, ["out.txt"])
    assert capsys.readouterr().out == f"-> {run.dir}   next: make train\n"
    assert resolve_run(tmp_path / "build" / "latest", setting="build", command="make data") == run.dir
    again = open_run(tmp_path)
    assert again.complete
    manifest = read_manifest(run.dir)
    assert {"inputs", "config", "commit", "versions", "host", "started", "ended", "counts"} <= manifest.keys()
    assert len(manifest["outputs"]["out.txt"]) == 64


def test_an_unfinished_or_missing_input_names_the_setting_and_the_command(tmp_path):
    run = open_run(tmp_path)
    for path in (run.dir, tmp_path / "build" / "latest", tmp_path / "nowhere"):
        with pytest.raises(UserError, match=r"^sft\.data=\S+ holds no finished run: run `make data` first"):
            resolve_run(path, setting="sft.data", command="make data")


def test_h04_two_processes_on_one_directory_are_refused(tmp_path):
    run = open_run(tmp_path)
    with pytest.raises(UserError, match=re.escape(str(run.dir))):
        open_run(tmp_path)
    run.finish({}, [])
    assert open_run(tmp_path).complete


def test_a_run_that_an_error_left_can_be_opened_again(tmp_path):
    run = open_run(tmp_path)
    with pytest.raises(ValueError, match="a bug"), closing(run):
        raise ValueError("a bug")
    assert not open_run(tmp_path).complete


def test_h09_an_unwritable_root_is_said_before_any_work(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"paths\.runs: cannot write"):
        open_run(tmp_path / "file")


def test_upstream_digest_ignores_times_and_host(tmp_path):
    def finished(root, host):
        run = open_run(root)
        (run.dir / "out.txt").write_text("same")
        run.finish({}, ["out.txt"])
        manifest = read_manifest(run.dir) | {"host": host, "started": host}
        (run.dir / "manifest.json").write_text(json.dumps(manifest))
        return run.dir

    one, two = finished(tmp_path / "1", "x"), finished(tmp_path / "2", "y")
    first = open_run(tmp_path / "3", inputs={"data": one})
    second = open_run(tmp_path / "4", inputs={"data": two})
    assert first.dir.name == second.dir.name


def test_fingerprints_do_not_depend_on_the_order_of_keys():
    assert fingerprint({"a": 1, "b": [1, 2]}) == fingerprint({"b": [1, 2], "a": 1})
    assert fingerprint({"a": 1}) != fingerprint({"a": 1.5})


def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch):
    target = tmp_path / "manifest.json"
    write_atomic(target, "old")

    def no_space(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", no_space)
    with pytest.raises(UserError, match="No space left"):
        write_atomic(target, "new")
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]
