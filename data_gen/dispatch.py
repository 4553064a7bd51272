"""Keeps the teacher busy: bounded requests in flight, replies on the disk as they come, a live line."""

import asyncio
import time
from collections.abc import Iterator
from typing import Any

from tqdm import tqdm

from data_gen.teacher.client import TOKENS, Client, Outcome
from data_gen.teacher.faults import proxy_hint
from data_gen.teacher.prompt import Request
from pipeline import AppendLog
from zoomr.errors import UserError

WRITE_SECONDS = 0.2
LONGEST_KEPT = 2_000  # characters of an unusable answer


class Dispatch:
    """One run over the requests that have no reply yet.

    Parameters
    ----------
    client : Client
        The teacher's client, made in the same event loop.
    log : AppendLog
        Where accepted replies go.
    bar : tqdm
        The live line.
    """

    def __init__(self, client: Client, log: AppendLog, bar: tqdm) -> None:
        self.client = client
        self.log = log
        self.bar = bar
        self.failures: dict[str, dict[str, Any]] = {}
        self._unwritten: list[dict[str, Any]] = []
        self._failed_in_a_row = 0
        self._started = time.monotonic()

    async def run(self, requests: Iterator[Request]) -> None:
        """Ask for every request; return when all have a reply in the log or an entry in `failures`.

        Raises
        ------
        UserError
            If the endpoint cannot be used, stops answering, or the disk is full.
        """
        try:
            async with asyncio.TaskGroup() as group:
                writer = group.create_task(self._write_as_they_come())
                workers = [group.create_task(self._work(requests)) for _ in range(self.client.teacher.concurrency)]
                await asyncio.gather(*workers)
                writer.cancel()
        except* UserError as errors:
            raise errors.exceptions[0] from None
        finally:
            self._write()

    async def _work(self, requests: Iterator[Request]) -> None:
        # Workers share the iterator: a request is built when there is room for it, so memory stays flat.
        for request in requests:
            outcome = await self.client.ask(request)
            if outcome.summary is None:
                self._fail(request, outcome)
            else:
                self._failed_in_a_row = 0
                self._unwritten.append(reply_row(request, outcome))
            self.bar.update()

    def _fail(self, request: Request, outcome: Outcome) -> None:
        self.failures[request.id] = failure_row(request, outcome)
        if outcome.reply is None:
            self._failed_in_a_row += 1
        if self._failed_in_a_row >= max(20, 2 * self.client.teacher.concurrency):
            url = self.client.base_url
            raise UserError(
                f"teacher.base_url={url}: the last {self._failed_in_a_row} paragraphs got no answer "
                f"({outcome.faults[-1].reason}); what was answered is kept, run the same command to go on."
                + proxy_hint(url)
            )

    async def _write_as_they_come(self) -> None:
        while True:
            await asyncio.sleep(WRITE_SECONDS)
            self._write()
            self.bar.set_postfix_str(self.status(), refresh=False)

    def _write(self) -> None:
        # One write and one wait for many rows is what makes thousands a second possible.
        if self._unwritten:
            self.log.extend(self._unwritten)
            self._unwritten = []

    def status(self) -> str:
        """Tokens a second, requests in flight, retries, failures, cost so far and estimated."""
        traffic = self.client.traffic
        tokens = [traffic.spent[key] for key in TOKENS]
        seconds = max(time.monotonic() - self._started, 1e-9)
        text = (
            f"{traffic.spent['requests'] / seconds:.0f} req/s, {sum(tokens) / seconds:.0f} tok/s, "
            f"{traffic.in_flight} in flight, {traffic.retries} retries, {len(self.failures)} failed"
        )
        cost = self.client.teacher.cost(*tokens)
        done = self.bar.n - self.bar.initial
        if cost is not None and done:
            text += f", ${cost:.2f} of about ${cost / done * (self.bar.total - self.bar.initial):.2f}"
        return text


def reply_row(request: Request, outcome: Outcome) -> dict[str, Any]:
    """Return the stored row of an accepted reply: what was answered, from which the summary is read when it is due."""
    reply = outcome.reply
    assert reply is not None
    return {
        "id": request.id,
        "trace": request.trace,
        "paragraph": request.paragraph,
        "raw": reply.content,
        "finish_reason": reply.finish_reason,
        "budget": outcome.budget,
        "usage": reply.usage,
        "model": reply.model,
        "tries": [fault.reason for fault in outcome.faults],
        "spent": outcome.spent,
        "seconds": outcome.seconds,
    }


def failure_row(request: Request, outcome: Outcome) -> dict[str, Any]:
    """Return the row of a paragraph that has no summary."""
    *tries, last = outcome.faults
    return {
        "id": request.id,
        "trace": request.trace,
        "paragraph": request.paragraph,
        "reason": last.reason,
        "status": next((fault.status for fault in reversed(outcome.faults) if fault.status), None),
        "tries": [fault.reason for fault in tries],
        "spent": outcome.spent,
        "raw": outcome.reply.content[:LONGEST_KEPT] if outcome.reply else None,
        "finish_reason": outcome.reply.finish_reason if outcome.reply else None,
    }
