"""What went wrong with an attempt, sorted by what to do about it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Literal

import openai

RETRIED_STATUS = (408, 409, 425)
SETTINGS_STATUS = {401: "teacher.api_key_env", 403: "teacher.api_key_env", 404: "teacher.model"}


@dataclass(frozen=True)
class Fault:
    """A failed attempt.

    Attributes
    ----------
    kind : str
        "rate limited" (wait, then again), "passing" (again after a back-off), "unreachable" (the same, nobody listens),
        "refused" (no retry helps).
    reason : str
        For people and for counting.
    status : int or None
        HTTP status.
    retry_after : float or None
        Seconds that the server asks to wait.
    """

    kind: Literal["rate limited", "passing", "unreachable", "refused"]
    reason: str
    status: int | None = None
    retry_after: float | None = None


def fault_of(error: Exception) -> Fault:
    """Sort an exception of the client."""
    if isinstance(error, TimeoutError | openai.APITimeoutError):
        return Fault("passing", "deadline")
    if isinstance(error, openai.APIStatusError):
        status = error.status_code
        retry_after = retry_after_seconds(error.response.headers)
        if status == 429:
            if error.code == "insufficient_quota":
                return Fault("refused", "insufficient quota", status)
            return Fault("rate limited", "rate limited", status, retry_after)
        if status >= 500 or status in RETRIED_STATUS:
            return Fault("passing", f"http {status}", status, retry_after)
        return Fault("refused", f"http {status}", status)
    if isinstance(error, openai.APIConnectionError):
        # By name, since the client's transport is another package from one major version to the next.
        if type(error.__cause__).__name__ == "ConnectError":
            return Fault("unreachable", "no connection")
        return Fault("passing", "connection lost")
    if isinstance(error, ValueError | openai.APIError):
        return Fault("passing", "broken reply")
    raise error


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Read Retry-After, in seconds or as a date (RFC 9110, 10.2.3), or the millisecond form of some servers."""
    if value := headers.get("retry-after-ms"):
        return float(value) / 1000 if value.isdecimal() else None
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError):
        return None
