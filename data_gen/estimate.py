"""What a run of the teacher will take: requests, tokens, money, time."""

from collections.abc import Iterable
from datetime import timedelta

from data_gen.lengths import approximate_tokens
from data_gen.teacher.answer import ANSWER_TOKENS
from data_gen.teacher.prompt import Request
from data_gen.teacher.settings import Teacher


def estimate(requests: Iterable[Request], teacher: Teacher, latency: float) -> str:
    """Say what requests will take; tokens are estimated without the teacher's tokenizer.

    Parameters
    ----------
    requests : iterable of Request
        Requests still to send.
    teacher : Teacher
        Prices, limits and concurrency; the strictest of the three times that follow from them counts.
    latency : float
        Seconds that one request is expected to take.
    """
    tokens = [sum(approximate_tokens(message["content"]) for message in request.messages) for request in requests]
    count, asked, answered = len(tokens), sum(tokens), len(tokens) * ANSWER_TOKENS
    seconds = max(
        count * latency / teacher.concurrency,
        60 * count / (teacher.requests_per_minute or float("inf")),
        60 * (asked + answered) / (teacher.tokens_per_minute or float("inf")),
    )
    cost = teacher.cost(asked, answered)
    price = "no price set (teacher.input_price, teacher.output_price)" if cost is None else f"${cost:.2f}"
    return (
        f"{count:,} requests, about {asked:,} prompt and {answered:,} answer tokens, {price}, "
        f"about {timedelta(seconds=round(seconds))} h"
    )
