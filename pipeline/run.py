"""A stage's directory: named by what it computes, finished when its manifest says so."""

import hashlib
import json
import platform
import shlex
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from pipeline.files import lock, sha256, write_atomic, writing
from pipeline.json_lines import write_json
from pipeline.provenance import commit, versions
from zoomr.errors import UserError

MANIFEST = "manifest.json"
LATEST = "latest"


def read_manifest(directory: Path) -> dict[str, Any]:
    """Return the manifest of a run directory, empty if the run never started."""
    path = directory / MANIFEST
    return json.loads(path.read_text()) if path.exists() else {}


def resolve_run(path: str | Path, *, setting: str, command: str) -> Path:
    """Return the finished run directory that `path` names.

    Parameters
    ----------
    path : str or Path
        A run directory, or a stage's `latest` file, which holds the name of the run that finished last.
    setting : str
        The option that `path` came from, named in the error.
    command : str
        The command that makes such a run, named in the error.

    Raises
    ------
    UserError
        If there is no such run or it has not finished.
    """
    path = Path(path)
    directory = path.parent / path.read_text().strip() if path.name == LATEST and path.is_file() else path
    if not read_manifest(directory).get("ended"):
        raise UserError(f"{setting}={path} holds no finished run: run `{command}` first, or name another directory.")
    return directory


def content_digest(path: Path) -> str:
    """Digest of an input: a finished run by its outputs (not by its times and host), anything else by its bytes."""
    outputs = read_manifest(path).get("outputs") if path.is_dir() else None
    if outputs is None:
        return sha256(path)
    return hashlib.sha256(json.dumps(outputs, sort_keys=True).encode()).hexdigest()


def fingerprint(value: Any, length: int = 10) -> str:
    """Return a short hex digest of a JSON-like value, independent of the order of its keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:length]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


class Run:
    """One run of a stage and the directory it fills. Make it with `Run.open`.

    The directory is this process's until the run is finished, or closed: `with contextlib.closing(run)`. Of a finished
    run in a directory that cannot be written to, no lock is held.
    """

    def __init__(self, directory: Path, next_command: str) -> None:
        self.dir = directory
        self.next_command = next_command
        try:
            self._lock: IO[str] | None = lock(directory / ".lock")
        except UserError as error:
            if isinstance(error.__cause__, BlockingIOError) or not read_manifest(directory).get("ended"):
                raise
            self._lock = None
        self.manifest = read_manifest(directory)

    @classmethod
    def open(
        cls,
        root: str | Path,
        stage: str,
        label: str,
        settings: dict[str, Any],
        inputs: dict[str, Path],
        config: dict[str, Any],
        next_command: str,
        check: Callable[[], object] = lambda: None,
    ) -> "Run":
        """Open the directory `root/stage/<label>-<hash>`, new or begun before.

        Parameters
        ----------
        root : str or Path
            The preset's directory under `paths.runs`.
        stage, label : str
            The stage's name, and a word for people that starts the directory's name.
        settings : dict
            What changes the result, and nothing else; the hash covers it and the contents of `inputs`.
        inputs : dict of str to Path
            Files or finished run directories that the stage reads.
        config : dict
            The whole resolved configuration, kept in the manifest.
        next_command : str
            What a person would run next.
        check : callable
            Called before a new directory is made, which is not made if it raises. For what takes too long to be
            checked where a run has long been made.

        Raises
        ------
        UserError
            If an input is missing, the directory cannot be written, or another process works in it.
        """
        missing = [f"{name}={path}" for name, path in inputs.items() if not path.exists()]
        if missing:
            raise UserError(f"{missing[0]} does not exist.")
        digests = {name: {"path": str(path), "sha256": content_digest(path)} for name, path in inputs.items()}
        key = fingerprint({"settings": settings, "inputs": {name: entry["sha256"] for name, entry in digests.items()}})
        directory = Path(root) / stage / f"{label}-{key}"
        if not read_manifest(directory):
            check()
        with writing(directory):
            directory.mkdir(parents=True, exist_ok=True)
        run = cls(directory, next_command)
        if not run.manifest:
            run.manifest = {
                "stage": stage,
                "command": shlex.join(["python", "-m", f"{Path(sys.argv[0]).parent.name}.{stage}", *sys.argv[1:]]),
                "settings": settings,
                "inputs": digests,
                "config": config,
                "commit": commit(),
                "versions": versions(),
                "host": platform.node(),
                "started": _now(),
                "ended": None,
            }
            run._write()
        return run

    @property
    def complete(self) -> bool:
        """Whether the run has finished."""
        return bool(self.manifest["ended"])

    def finish(self, counts: dict[str, Any], outputs: list[str]) -> None:
        """Record counts and the digests of `outputs` (names in the directory), mark the run finished, say so."""
        self.manifest |= {
            "counts": counts,
            "outputs": {name: sha256(self.dir / name) for name in outputs},
            "ended": _now(),
        }
        self._write()
        self.say_done()

    def say_done(self) -> None:
        """Print where the outcome lies and what comes next; later stages find this run as `latest`."""
        latest = self.dir.parent / LATEST
        if not latest.exists() or latest.read_text() != self.dir.name:
            write_atomic(latest, self.dir.name)
        print(f"-> {self.dir}   next: {self.next_command}")
        self.close()

    def close(self) -> None:
        """Leave the directory to other processes."""
        if self._lock:
            self._lock.close()

    def _write(self) -> None:
        write_json(self.dir / MANIFEST, self.manifest)
