"""What the processes of one launch have to agree on. One process alone needs no accelerator to know that."""

import os
from typing import Any


def rank() -> int:
    """Return the number of this process, 0 for the one that writes."""
    return int(os.environ.get("RANK", 0))


def world_size() -> int:
    """Return the number of processes."""
    return int(os.environ.get("WORLD_SIZE", 1))


def from_first(value: Any) -> Any:
    """Return the first process's `value` in every process."""
    if world_size() == 1:
        return value
    import torch
    from accelerate import PartialState
    from accelerate.utils import broadcast_object_list

    PartialState(cpu=not torch.cuda.is_available())  # joins the processes, which the broadcast takes for granted
    return broadcast_object_list([value])[0]
