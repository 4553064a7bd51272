"""Run directories: named by what they compute, finished when the manifest says so."""

import errno
import json
import os
import re
from contextlib import closing

import pytest

from pipeline import Run, files, fingerprint, read_manifest, resolve_run, write_atomic, write_rows
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
    with pytest.raises(UserError, match=r"Cannot write to .* set paths\.runs"):
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


@pytest.mark.parametrize("number", ["ENOSPC", "EDQUOT", "EROFS", "EIO", "EFBIG"])
def test_n14_what_the_disk_refuses_is_one_sentence_and_leaves_the_old_file(tmp_path, monkeypatch, number):
    target = tmp_path / "manifest.json"
    write_atomic(target, "old")

    def refuse(descriptor):
        raise OSError(getattr(errno, number), os.strerror(getattr(errno, number)))

    monkeypatch.setattr(files.os, "fsync", refuse)
    said = "No space left" if number in ("ENOSPC", "EDQUOT") else f"Cannot write to {target}"
    with pytest.raises(UserError, match=rf"{said}.* or set paths\.runs to another disk"):
        write_atomic(target, "new")
    with pytest.raises(UserError, match=said):
        write_rows(target, [{"id": "new"}])
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]


def test_an_error_of_the_rows_themselves_is_not_told_as_one_of_the_disk(tmp_path):
    def rows():
        yield {"id": 1}
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        write_rows(tmp_path / "rows.jsonl", rows())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("number", ["ENOSYS", "ENOLCK", "EOPNOTSUPP"])
def test_n14_a_file_system_without_locks_is_said_and_worked_on(tmp_path, monkeypatch, capsys, number):
    def no_locks(*arguments):
        raise OSError(getattr(errno, number), os.strerror(getattr(errno, number)))

    monkeypatch.setattr(files.fcntl, "flock", no_locks)
    run = open_run(tmp_path)
    assert capsys.readouterr().err.startswith(f"warning: paths.runs: the file system of {run.dir} has no locks")
    run.finish({}, [])
    assert read_manifest(run.dir)["ended"]


def test_a_finished_run_is_read_where_nothing_can_be_written_and_an_unfinished_one_is_refused(tmp_path, monkeypatch):
    open_run(tmp_path).finish({}, [])
    open_run(tmp_path, settings={"a": 2}).close()

    def read_only(path, mode="r"):
        if "w" in mode:
            raise PermissionError(errno.EROFS, "Read-only file system")
        return open(path, mode)

    monkeypatch.setattr(files, "open", read_only, raising=False)
    run = open_run(tmp_path)
    assert run.complete
    run.say_done()
    with pytest.raises(UserError, match=r"Cannot write to .*Read-only file system.*paths\.runs"):
        open_run(tmp_path, settings={"a": 2})


def test_two_processes_see_each_others_manifest(tmp_path, monkeypatch):
    """What another process has finished between the look for a manifest and the lock is not begun again."""
    first = open_run(tmp_path)
    taken = []

    def finished_meanwhile(path):
        first.finish({"rows": 1}, [])
        taken.append(path)
        return files.lock(path)

    monkeypatch.setattr("pipeline.run.lock", finished_meanwhile)
    assert open_run(tmp_path).complete and taken


def test_n14_a_clock_that_goes_back_does_not_undo_a_finished_run(tmp_path, monkeypatch):
    run = open_run(tmp_path)
    monkeypatch.setattr("pipeline.run._now", lambda: "1970-01-01T00:00:00+00:00")
    run.finish({}, [])
    assert open_run(tmp_path).complete
    assert resolve_run(tmp_path / "build" / "latest", setting="x", command="y") == run.dir
