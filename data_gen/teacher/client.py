"""Asks the teacher for one summary: attempts, deadline, back-off, and what is remembered of each."""

import asyncio
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import openai
from aiolimiter import AsyncLimiter
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, wait_random_exponential

from data_gen.lengths import approximate_tokens
from data_gen.teacher.answer import ADVICE, ANSWER_TOKENS, Rejected, Reply, summary_of
from data_gen.teacher.faults import SETTINGS_STATUS, Fault, fault_of, proxy_hint
from data_gen.teacher.prompt import Request
from data_gen.teacher.settings import Patience, Teacher
from zoomr.errors import UserError

UNREACHABLE_ATTEMPTS = 3
BUDGET_GROWTH = 4
TOKEN_WINDOW = 60  # seconds whose tokens may go at once, as providers count them
TOKENS = ("prompt_tokens", "completion_tokens")


@dataclass
class Traffic:
    """Running totals of a stage's requests; `spent` has requests and tokens both ways."""

    answered: int = 0
    in_flight: int = 0
    retries: int = 0
    spent: Counter[str] = field(default_factory=Counter)


@dataclass
class Outcome:
    """What came of a paragraph.

    Attributes
    ----------
    summary : str or None
        The summary; None if the paragraph failed.
    reply : Reply or None
        The last reply.
    budget : int
        Tokens that the last answer could have.
    faults : list of Fault
        What was wrong with each attempt but a successful last one.
    spent : Counter
        Requests and tokens of all attempts.
    waited : float
        Seconds between attempts.
    seconds : float
        From the first request to the end.
    """

    budget: int
    summary: str | None = None
    reply: Reply | None = None
    faults: list[Fault] = field(default_factory=list)
    spent: Counter[str] = field(default_factory=Counter)
    waited: float = 0.0
    seconds: float = 0.0


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
        requests, tokens = teacher.requests_per_minute, teacher.tokens_per_minute
        self._requests = AsyncLimiter(1, 60 / requests) if requests else None
        self._tokens = AsyncLimiter(tokens * TOKEN_WINDOW / 60, TOKEN_WINDOW) if tokens else None
        self._resume = 0.0
        self._backoff = wait_random_exponential(multiplier=patience.backoff, max=patience.backoff_max)
        # A server that this stage has started is beside it, whatever proxy the environment names.
        direct = openai.DefaultAsyncHttpxClient(trust_env=False) if teacher.base_url is None else None
        try:
            # Retries are counted here: the library's own hide attempts, and stop heeding Retry-After after a minute.
            self._openai = openai.AsyncOpenAI(
                base_url=base_url,
                api_key=teacher.api_key(),
                max_retries=0,
                timeout=teacher.deadline,
                http_client=direct,
            )
        except (ImportError, ValueError) as error:
            raise UserError(f"teacher.base_url={base_url} cannot be asked: {error}.{proxy_hint(base_url)}") from error

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
        outcome = Outcome(self.teacher.budget)
        started = time.monotonic()
        attempts = AsyncRetrying(
            retry=retry_if_exception(lambda error: isinstance(error, Fault) and error.kind != "refused"),
            wait=lambda state: self._delay(outcome.faults[-1], state),
            stop=lambda state: self._is_enough(outcome, state.upcoming_sleep),
            before_sleep=lambda state: self._prepare(outcome, state.upcoming_sleep),
            reraise=True,
        )
        with suppress(Fault):
            await attempts(self._attempt, request, outcome)
        outcome.seconds = round(time.monotonic() - started, 3)
        return outcome

    async def _attempt(self, request: Request, outcome: Outcome) -> None:
        try:
            outcome.reply = await self._send(request, outcome)
            self.traffic.answered += 1
            outcome.summary = summary_of(outcome.reply, self.teacher.answer, outcome.budget, self.summary_tokens)
        except Rejected as rejection:
            fault = Fault("answer", str(rejection))
        except Exception as error:
            fault = fault_of(error)
        else:
            return
        outcome.faults.append(fault)
        self._check_settings(outcome.faults)
        raise fault

    async def _send(self, request: Request, outcome: Outcome) -> Reply:
        system, user = request.messages
        if outcome.faults and (advice := ADVICE.get(outcome.faults[-1].reason)):
            user = {**user, "content": f"{user['content']}\n\n{advice}"}
        body: dict[str, Any] = {**self.teacher.sampling, "model": self.teacher.model, "messages": [system, user]}
        if self.teacher.budget_key:
            body[self.teacher.budget_key] = outcome.budget
        await self._turn(sum(approximate_tokens(message["content"]) for message in (system, user)) + ANSWER_TOKENS)
        self.traffic.in_flight += 1
        spent = Counter(requests=1)
        try:
            async with asyncio.timeout(self.teacher.deadline):
                # The plain body, not the typed object: a third of the time goes into types that nobody reads, and a
                # server's slips, such as a missing finish reason, must reach the checks.
                reply = Reply.read(await self._openai.post("/chat/completions", cast_to=object, body=body))
            spent.update({key: reply.usage.get(key, 0) for key in TOKENS})
            return reply
        finally:
            self.traffic.in_flight -= 1
            self.traffic.spent.update(spent)
            outcome.spent.update(spent)

    async def _turn(self, tokens: int) -> None:
        """Wait until the limits, and the server's last Retry-After, let a request go."""
        if self._requests:
            await self._requests.acquire()
        if self._tokens:
            await self._tokens.acquire(min(tokens, self._tokens.max_rate))
        while (delay := self._resume - time.monotonic()) > 0:
            await asyncio.sleep(delay)

    def _delay(self, fault: Fault, state: RetryCallState) -> float:
        if fault.kind == "answer":
            return 0.0
        return self._backoff(state) if fault.retry_after is None else fault.retry_after

    def _is_enough(self, outcome: Outcome, delay: float) -> bool:
        last = outcome.faults[-1]
        if last.kind == "answer":
            return sum(fault.kind == "answer" for fault in outcome.faults) >= self.patience.answers
        if outcome.waited + delay > self.patience.rate_limited:
            return True
        others = sum(fault.kind in ("passing", "unreachable") for fault in outcome.faults)
        return last.kind != "rate limited" and others >= self.patience.faults

    def _prepare(self, outcome: Outcome, delay: float) -> None:
        """Get ready for another attempt after so many seconds."""
        last = outcome.faults[-1]
        self.traffic.retries += 1
        if last.kind == "rate limited":
            self._resume = max(self._resume, time.monotonic() + delay)
        if last.kind != "answer":
            outcome.waited += delay
        elif last.reason == "length":
            outcome.budget = min(2 * outcome.budget, BUDGET_GROWTH * self.teacher.budget)

    def _check_settings(self, faults: list[Fault]) -> None:
        """Raise for what no paragraph can get past, while nothing has ever been answered."""
        if self.traffic.answered:
            return
        status, hint = faults[-1].status, proxy_hint(self.base_url)
        if sum(fault.kind == "unreachable" for fault in faults) >= UNREACHABLE_ATTEMPTS:
            raise UserError(
                f"teacher.base_url={self.base_url} cannot be reached: start the server, or correct the URL.{hint}"
            )
        if status in SETTINGS_STATUS:
            raise UserError(
                f"The teacher at {self.base_url} answers {status}: check {SETTINGS_STATUS[status]} "
                f"(model {self.teacher.model}).{hint}"
            )
