"""A duration into counts: `${scaled:${time_limit},2h,24}` is 24 for two hours, 6 for thirty minutes."""

import math
import re

from omegaconf import OmegaConf

from zoomr.errors import UserError

SECONDS = {"s": 1, "m": 60, "h": 3600}


def seconds(duration: str) -> float:
    """Seconds of a duration such as 90s, 30m, 1.5h or 1h30m.

    Raises
    ------
    UserError
        If it is not of that form.
    """
    parts = re.findall(r"(\d+(?:\.\d+)?)([smh])", str(duration))
    total = sum(float(number) * SECONDS[unit] for number, unit in parts)
    if not total or "".join(number + unit for number, unit in parts) != duration:
        raise UserError(f"time_limit={duration}: write a duration such as 30m, 2h or 1h30m.")
    return total


def scaled(time_limit: str, usual: str, count: int) -> int:
    """The count for a time limit, where `count` takes the `usual` time; at least 2."""
    return max(2, math.floor(count * seconds(time_limit) / seconds(usual)))


OmegaConf.register_new_resolver("scaled", scaled, replace=True)
