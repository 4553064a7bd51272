"""Checkpoints of a run that may have been killed while it wrote one."""

import json
import shutil
from pathlib import Path

from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_utils import get_last_checkpoint


def last_checkpoint(directory: Path) -> Path | None:
    """Return the latest complete checkpoint, and remove those that a kill left half-written."""
    while directory.exists() and (latest := get_last_checkpoint(str(directory))):
        if _state(Path(latest)):
            return Path(latest)
        shutil.rmtree(latest)
    return None


def step_of(checkpoint: Path | None) -> int:
    """Return the optimizer steps that a checkpoint holds."""
    return _state(checkpoint)["global_step"] if checkpoint else 0


def _state(checkpoint: Path) -> dict:
    """The trainer's state, which it writes last; empty where it is missing or cut."""
    try:
        return json.loads((checkpoint / TRAINER_STATE_NAME).read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return {}
