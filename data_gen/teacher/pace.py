"""Limits that the client keeps: requests and tokens a minute, and a pause for all when the server asks for one."""

import asyncio
import time


class Pace:
    """Spaces requests evenly, so that no minute holds more than its limit.

    Parameters
    ----------
    requests_per_minute, tokens_per_minute : int or None
        The limits; None for none.
    """

    def __init__(self, requests_per_minute: int | None, tokens_per_minute: int | None) -> None:
        self._seconds_per_request = 60 / requests_per_minute if requests_per_minute else 0.0
        self._seconds_per_token = 60 / tokens_per_minute if tokens_per_minute else 0.0
        self._next_request = self._next_token = self._resume = 0.0

    async def wait(self, tokens: int) -> None:
        """Wait for the turn of a request that will use about so many tokens."""
        now = time.monotonic()
        turn = max(now, self._next_request, self._next_token)
        self._next_request = turn + self._seconds_per_request
        self._next_token = turn + tokens * self._seconds_per_token
        while (delay := max(turn, self._resume) - time.monotonic()) > 0:
            await asyncio.sleep(delay)

    def correct(self, tokens: int) -> None:
        """Account for tokens that a request used beyond its estimate (negative: did not use)."""
        self._next_token += tokens * self._seconds_per_token

    def pause(self, seconds: float) -> None:
        """Let no request start for so many seconds."""
        self._resume = max(self._resume, time.monotonic() + seconds)
