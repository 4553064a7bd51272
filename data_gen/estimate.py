"""What a run of the teacher will take: requests, tokens, money, time."""

from collections.abc import Iterable
from dataclasses import dataclass

from data_gen.lengths import approximate_tokens
from data_gen.teacher.answer import ANSWER_TOKENS
from data_gen.teacher.prompt import Request
from data_gen.teacher.settings import Teacher


@dataclass(frozen=True)
class Estimate:
    """Sums over requests; tokens are estimated without the teacher's tokenizer.

    Attributes
    ----------
    requests, prompt_tokens, completion_tokens : int
        Requests still to send and their tokens.
    cost : float or None
        Their price, None where none is set.
    seconds : float
        The longest of the times that the latency and the two limits ask for.
    """

    requests: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    seconds: float

    @classmethod
    def of(cls, requests: Iterable[Request], teacher: Teacher, latency: float) -> "Estimate":
        """Add up requests.

        Parameters
        ----------
        requests : iterable of Request
            Requests still to send.
        teacher : Teacher
            Prices, limits and concurrency.
        latency : float
            Seconds that one request is expected to take.
        """
        count = prompt_tokens = 0
        for request in requests:
            count += 1
            prompt_tokens += sum(approximate_tokens(message["content"]) for message in request.messages)
        answer_tokens = count * ANSWER_TOKENS
        times = [count * latency / teacher.concurrency]
        if teacher.requests_per_minute:
            times.append(60 * count / teacher.requests_per_minute)
        if teacher.tokens_per_minute:
            times.append(60 * (prompt_tokens + answer_tokens) / teacher.tokens_per_minute)
        return cls(count, prompt_tokens, answer_tokens, teacher.cost(prompt_tokens, answer_tokens), max(times))

    def __str__(self) -> str:
        cost = "no price set (teacher.input_price, teacher.output_price)" if self.cost is None else f"${self.cost:.2f}"
        hours, rest = divmod(round(self.seconds), 3600)
        return (
            f"{self.requests:,} requests, about {self.prompt_tokens:,} prompt and {self.completion_tokens:,} answer "
            f"tokens, {cost}, about {hours}:{rest // 60:02d}:{rest % 60:02d} h"
        )
