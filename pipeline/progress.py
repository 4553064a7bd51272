"""The progress bar of every stage: rate and time left, quiet where nobody watches."""

import sys
from collections.abc import Iterable
from typing import Any

from tqdm import tqdm


def progress(
    iterable: Iterable[Any] | None = None,
    total: int | None = None,
    unit: str = "row",
    description: str = "",
    initial: int = 0,
) -> tqdm:
    """Return a bar that refreshes twice a second on a terminal and every ten seconds in a log."""
    interval = 0.5 if sys.stderr.isatty() else 10.0
    return tqdm(
        iterable, total=total, unit=unit, desc=description, initial=initial, mininterval=interval, dynamic_ncols=True
    )
