"""What went wrong with an attempt, sorted by what to do about it."""

import math
import os
import urllib.request
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Literal
from urllib.parse import urlsplit

import openai

RETRIED_STATUS = (408, 409, 425)
SETTINGS_STATUS = {401: "teacher.api_key_env", 403: "teacher.api_key_env", 404: "teacher.model"}
Kind = Literal["answer", "rate limited", "passing", "unreachable", "refused"]


class Fault(Exception):
    """An attempt that brought no usable answer.

    Attributes
    ----------
    kind : str
        "answer" (unusable: again, saying so), "rate limited" (wait, then again), "passing" (again after a back-off),
        "unreachable" (the same, nobody listens), "refused" (no retry helps).
    reason : str
        For people and for counting.
    status : int or None
        HTTP status.
    retry_after : float or None
        Seconds that the server asks to wait.
    """

    def __init__(self, kind: Kind, reason: str, status: int | None = None, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.kind, self.reason, self.status, self.retry_after = kind, reason, status, retry_after


def fault_of(error: Exception) -> Fault:
    """Sort an exception of the client, or of reading what the server sent; others are raised again."""
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
    if isinstance(error, ValueError | RecursionError | openai.APIError):
        return Fault("passing", "broken reply")
    raise error


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Read Retry-After, in seconds or as a date (RFC 9110, 10.2.3), or the millisecond form of some servers."""
    try:
        if value := headers.get("retry-after-ms"):
            seconds = float(value) / 1000
        else:
            seconds = float(headers.get("retry-after", ""))
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(headers["retry-after"]) - datetime.now(UTC)).total_seconds()
        except (KeyError, TypeError, ValueError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def proxy_hint(url: str) -> str:
    """Return a sentence that names the environment variable by which requests for `url` go through a proxy, if any."""
    parts = urlsplit(url)
    if urllib.request.proxy_bypass(parts.netloc):
        return ""
    names = [name for base in (f"{parts.scheme}_proxy", "all_proxy") for name in (base, base.upper())]
    found = next((name for name in names if os.environ.get(name)), None)
    return (
        f" Requests go through the proxy in {found}; no_proxy={parts.hostname} lets them go straight." if found else ""
    )
