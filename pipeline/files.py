"""Files that survive a kill at any moment: whole-file replacement and content digests."""

import errno
import hashlib
import os
from pathlib import Path

from zoomr.errors import UserError


def full_disk(path: Path) -> UserError:
    """Return the sentence for a write to `path` that found no space left."""
    return UserError(f"No space left on the disk that holds {path}: free some, or set paths.runs to another disk.")


def write_atomic(path: str | Path, content: str | bytes) -> None:
    """Replace `path` by `content` so that a reader sees the old file or the new one, never a part.

    Raises
    ------
    UserError
        If the disk is full; the old file is untouched.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content.encode() if isinstance(content, str) else content
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with open(partial, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        if error.errno == errno.ENOSPC:
            raise full_disk(path) from error
        raise


def sha256(path: str | Path) -> str:
    """Hex digest of a file, or of a directory's files in the order of their relative names."""
    path = Path(path)
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
        lines = "".join(f"{file.relative_to(path).as_posix()} {sha256(file)}\n" for file in files)
        return hashlib.sha256(lines.encode()).hexdigest()
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
