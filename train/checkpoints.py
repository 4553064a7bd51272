"""Checkpoints of a run that may have been killed while it wrote one."""

import json
import shutil
from pathlib import Path

STATE = "trainer_state.json"


def last_checkpoint(directory: Path) -> Path | None:
    """Return the latest complete checkpoint, and remove those that a kill left half-written.

    The trainer writes its state last, so a checkpoint whose state can be read is complete.
    """
    checkpoints = sorted(directory.glob("checkpoint-*"), key=lambda path: int(path.name.rpartition("-")[2]))
    while checkpoints:
        latest = checkpoints.pop()
        if _is_complete(latest):
            return latest
        shutil.rmtree(latest)
    return None


def step_of(checkpoint: Path | None) -> int:
    """Return the optimizer steps that a checkpoint holds."""
    return json.loads((checkpoint / STATE).read_text())["global_step"] if checkpoint else 0


def _is_complete(checkpoint: Path) -> bool:
    state = checkpoint / STATE
    if not state.exists():
        return False
    try:
        json.loads(state.read_text())
    except json.JSONDecodeError:
        return False
    return True
