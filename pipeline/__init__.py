"""What all stages share: the command line, what a run leaves on the disk, and how it survives being killed."""

from pipeline.append_log import AppendLog
from pipeline.files import sha256, write_atomic
from pipeline.json_lines import iterate_rows, read_rows, write_json, write_rows
from pipeline.progress import progress
from pipeline.run import Run, fingerprint, read_manifest, resolve_run

__all__ = [
    "AppendLog",
    "Run",
    "fingerprint",
    "iterate_rows",
    "progress",
    "read_manifest",
    "read_rows",
    "resolve_run",
    "sha256",
    "write_atomic",
    "write_json",
    "write_rows",
]
