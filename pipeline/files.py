"""Files that survive a kill at any moment: whole-file replacement, locks and content digests."""

import errno
import fcntl
import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from zoomr.errors import UserError

FULL = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say in one sentence what keeps the block from writing to `path`.

    Raises
    ------
    UserError
        In place of an OSError: the disk or a quota is full, the directory is read-only, the file system fails.
    """
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            reason = f"No space left on the disk that holds {path}, or in your quota there: free some"
        else:
            reason = f"Cannot write to {path} ({error.strerror}): make it writable"
        raise UserError(f"{reason}, or set paths.runs to another disk.") from error


@contextmanager
def replacing(path: str | Path) -> Iterator[Callable[[bytes], None]]:
    """Replace a file by what the block writes: a reader sees the old file or the new one, never a part.

    Yields
    ------
    callable
        Writes bytes to the new file, which takes its name when the block ends, and is gone if it fails.

    Raises
    ------
    UserError
        If the file cannot be written; the old one is untouched.
    """
    path = Path(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = open(partial, "wb")

    def write(data: bytes) -> None:
        with writing(path):
            file.write(data)

    try:
        with file:
            yield write
            with writing(path):
                file.flush()
                os.fsync(file.fileno())
                os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def write_atomic(path: str | Path, content: str | bytes) -> None:
    """Replace `path` by `content`, whole or not at all; see `replacing` for errors."""
    with replacing(path) as write:
        write(content.encode() if isinstance(content, str) else content)


def lock(path: Path) -> IO[str]:
    """Hold a file's lock until the returned file is closed, or its process ends.

    Raises
    ------
    UserError
        If another process holds it, or the file cannot be made. A file system without locks is no error, and said.
    """
    with writing(path.parent):
        file = open(path, "w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.close()
        raise UserError(f"Another process is at work in {path.parent}: wait for it, or stop it.") from error
    except OSError as error:
        print(
            f"warning: paths.runs: the file system of {path.parent} has no locks ({error.strerror}): "
            "see to it that one process at a time works there.",
            file=sys.stderr,
        )
    return file


def sha256(path: str | Path) -> str:
    """Hex digest of a file, or of a directory's files in the order of their relative names."""
    path = Path(path)
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
        lines = "".join(f"{file.relative_to(path).as_posix()} {sha256(file)}\n" for file in files)
        return hashlib.sha256(lines.encode()).hexdigest()
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
