"""What a run leaves on the disk, and how it survives being killed."""

from zoomr.runs.append_log import AppendLog
from zoomr.runs.errors import UserError
from zoomr.runs.files import sha256, write_atomic
from zoomr.runs.progress import progress
from zoomr.runs.run import Run, fingerprint, read_manifest, resolve_run

__all__ = [
    "AppendLog",
    "Run",
    "UserError",
    "fingerprint",
    "progress",
    "read_manifest",
    "resolve_run",
    "sha256",
    "write_atomic",
]
