"""Asks the teacher for one summary: attempts, deadline, back-off, and what is remembered of each."""

import asyncio
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import openai

from data_gen.lengths import approximate_tokens
from data_gen.teacher.answer import ADVICE, Rejected, Reply, summary_of
from data_gen.teacher.faults import SETTINGS_STATUS, Fault, fault_of
from data_gen.teacher.pace import Pace
from data_gen.teacher.prompt import Request
from data_gen.teacher.settings import Patience, Teacher
from zoomr.errors import UserError

UNREACHABLE_ATTEMPTS = 3
BUDGET_GROWTH = 4
TOKENS = ("prompt_tokens", "completion_tokens")
SPENT = ("requests", *TOKENS)


@dataclass
class Traffic:
    """Running totals of a stage's requests."""

    answered: int = 0
    sent: int = 0
    in_flight: int = 0
    retries: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    faults: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Outcome:
    """What came of a paragraph.

    Attributes
    ----------
    summary : str or None
        The summary; None if the paragraph failed.
    reason : str or None
        Why it failed.
    status : int or None
        Last HTTP status that was not 200.
    tries : list of str
        Reasons of the attempts before the last.
    spent : dict
        Requests and tokens of all attempts.
    reply : Reply or None
        The last reply.
    seconds : float
        From the first request to the end.
    """

    summary: str | None
    reason: str | None
    status: int | None
    tries: list[str]
    spent: dict[str, int]
    reply: Reply | None
    seconds: float


class Client:
    """An asynchronous client for one event loop.

    Parameters
    ----------
    teacher : Teacher
        The endpoint and its limits.
    base_url : str
        Where it listens.
    patience : Patience
        How often to try again.
    summary_tokens : int
        Longest summary accepted.
    """

    def __init__(self, teacher: Teacher, base_url: str, patience: Patience, summary_tokens: int) -> None:
        self.teacher = teacher
        self.patience = patience
        self.summary_tokens = summary_tokens
        self.traffic = Traffic()
        self.base_url = base_url
        self._pace = Pace(teacher.requests_per_minute, teacher.tokens_per_minute)
        # Retries and deadlines are kept here: the library's own would hide attempts and answer to no ceiling of ours.
        self._openai = openai.AsyncOpenAI(
            base_url=base_url, api_key=teacher.api_key(), max_retries=0, timeout=teacher.deadline
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._openai.close()

    async def ask(self, request: Request) -> Outcome:
        """Ask until there is a usable summary or patience ends.

        Raises
        ------
        UserError
            If the endpoint has never answered and cannot be reached, or refuses the key or the model.
        """
        started = time.monotonic()
        tries: list[str] = []
        spent = dict.fromkeys(SPENT, 0)
        reply: Reply | None = None
        status: int | None = None
        answers = faults = 0
        waited = 0.0
        budget = self.teacher.budget
        advice = ""

        def outcome(summary: str | None, reason: str | None) -> Outcome:
            seconds = round(time.monotonic() - started, 3)
            return Outcome(summary, reason, status, tries, spent, reply, seconds)

        while True:
            try:
                spent["requests"] += 1
                reply = await self._send(request, budget, advice)
                for key in TOKENS:
                    spent[key] += reply.usage.get(key, 0)
                self.traffic.answered += 1
                return outcome(summary_of(reply, self.teacher.answer, budget, self.summary_tokens), None)
            except Rejected as rejection:
                reason = str(rejection)
                answers += 1
                if answers >= self.patience.answers:
                    return outcome(None, reason)
                advice = ADVICE.get(reason, "")
                if reason == "length":
                    budget = min(2 * budget, BUDGET_GROWTH * self.teacher.budget)
            except Exception as error:
                fault = fault_of(error)
                reason, status = fault.reason, fault.status or status
                self._check_settings(fault, faults)
                if fault.kind == "refused":
                    return outcome(None, reason)
                delay = self._delay(fault, faults)
                if fault.kind == "rate limited":
                    waited += delay
                    if waited > self.patience.rate_limited:
                        return outcome(None, reason)
                    self._pace.pause(delay)
                else:
                    faults += 1
                    if faults >= self.patience.faults:
                        return outcome(None, reason)
                    await asyncio.sleep(delay)
            tries.append(reason)
            self.traffic.retries += 1
            self.traffic.faults[reason] += 1

    async def _send(self, request: Request, budget: int, advice: str) -> Reply:
        system, user = request.messages
        if advice:
            user = {**user, "content": f"{user['content']}\n\n{advice}"}
        body: dict[str, Any] = {**self.teacher.sampling, "model": self.teacher.model, "messages": [system, user]}
        if self.teacher.budget_key:
            body[self.teacher.budget_key] = budget
        estimate = approximate_tokens(system["content"]) + approximate_tokens(user["content"]) + budget
        await self._pace.wait(estimate)
        self.traffic.sent += 1
        self.traffic.in_flight += 1
        try:
            async with asyncio.timeout(self.teacher.deadline):
                # The plain body, not the typed object: a third of the time goes into types that nobody reads, and a
                # server's slips, such as a missing finish reason, must reach the checks.
                reply = Reply.read(await self._openai.post("/chat/completions", cast_to=object, body=body))
        finally:
            self.traffic.in_flight -= 1
        used = [reply.usage.get(key, 0) for key in TOKENS]
        self.traffic.prompt_tokens += used[0]
        self.traffic.completion_tokens += used[1]
        if any(used):
            self._pace.correct(sum(used) - estimate)
        return reply

    def _delay(self, fault: Fault, faults: int) -> float:
        ceiling = min(self.patience.backoff_max, self.patience.backoff * 2**faults)
        # Jitter keeps requests that failed together from coming back together.
        return fault.retry_after if fault.retry_after is not None else ceiling * random.uniform(0.5, 1.0)

    def _check_settings(self, fault: Fault, faults: int) -> None:
        """Raise for what no paragraph can get past, while nothing has ever been answered."""
        if self.traffic.answered:
            return
        if fault.kind == "unreachable" and faults + 1 >= UNREACHABLE_ATTEMPTS:
            raise UserError(
                f"teacher.base_url={self.base_url} cannot be reached: start the server, or correct the URL."
            )
        if fault.status in SETTINGS_STATUS:
            raise UserError(
                f"The teacher at {self.base_url} answers {fault.status}: check {SETTINGS_STATUS[fault.status]} "
                f"(model {self.teacher.model})."
            )
