"""What is configured about a teacher and about the patience with it."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from zoomr.errors import UserError

BUDGET_KEYS = ("max_completion_tokens", "max_tokens")


@dataclass(frozen=True)
class Teacher:
    """A model behind an OpenAI-compatible endpoint.

    Attributes
    ----------
    name : str
        Label for people; names the run directory.
    model : str
        Model name sent with every request.
    base_url : str or None
        The endpoint, such as http://localhost:8000/v1; None for one that the stage starts itself with `serve`.
    api_key_env : str or None
        Environment variable that holds the key; None for a server without keys.
    serve : list of str or None
        Command that serves the model on the loopback port; `{port}`, `{model}` and `{python}` (this interpreter) are
        filled in.
    answer : str
        "json" where the model reliably writes a JSON object, "text" for small models.
    sampling : dict
        Request parameters such as temperature, max_tokens, seed; sent as they are.
    concurrency : int
        Requests in flight at most.
    requests_per_minute, tokens_per_minute : int or None
        Limits that the client keeps; tokens count both ways.
    deadline : float
        Seconds an attempt may take.
    input_price, output_price : float or None
        Price of a million tokens.
    """

    name: str
    model: str
    base_url: str | None
    api_key_env: str | None
    serve: tuple[str, ...] | None
    answer: Literal["json", "text"]
    sampling: Mapping[str, Any]
    concurrency: int
    requests_per_minute: int | None
    tokens_per_minute: int | None
    deadline: float
    input_price: float | None
    output_price: float | None

    def __post_init__(self) -> None:
        if self.answer not in ("json", "text"):
            raise UserError(f"teacher.answer={self.answer} must be json or text.")
        if self.api_key_env is not None and not re.fullmatch(r"[A-Z][A-Z0-9_]*", self.api_key_env):
            # The value may be a key pasted by mistake, so it is not repeated.
            raise UserError("teacher.api_key_env must be the name of an environment variable, not a key.")
        if self.base_url is None and self.serve is None:
            raise UserError("teacher.base_url is not set: give the endpoint, such as http://localhost:8000/v1.")
        if self.base_url is not None:
            url = urlsplit(self.base_url)
            if url.username or url.password or url.query:
                raise UserError("teacher.base_url must not carry a key: name its variable in teacher.api_key_env.")
            if url.scheme not in ("http", "https") or not url.hostname:
                raise UserError("teacher.base_url must be a URL such as http://localhost:8000/v1.")

    @property
    def budget_key(self) -> str | None:
        """The request parameter that caps the answer's length."""
        return next((key for key in BUDGET_KEYS if key in self.sampling), None)

    @property
    def budget(self) -> int:
        """Tokens an answer may have; 0 where the server decides."""
        return self.sampling[self.budget_key] if self.budget_key else 0

    def api_key(self) -> str:
        """Read the key from the environment.

        Raises
        ------
        UserError
            If the variable is not set.
        """
        if self.api_key_env is None:
            return "none"
        key = os.environ.get(self.api_key_env, "").strip()
        if not key:
            raise UserError(f"The environment variable {self.api_key_env} (teacher.api_key_env) holds no key.")
        return key

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float | None:
        """Price of so many tokens, None where no price is set."""
        if self.input_price is None or self.output_price is None:
            return None
        return (prompt_tokens * self.input_price + completion_tokens * self.output_price) / 1e6


@dataclass(frozen=True)
class Patience:
    """How often a paragraph is tried again.

    Attributes
    ----------
    answers : int
        Attempts that may end in an unusable answer.
    faults : int
        Attempts that may end in a lost connection, a deadline or a server error.
    rate_limited : float
        Seconds one paragraph may wait between its attempts, all together, as the server's rate limit asks.
    backoff, backoff_max : float
        Most seconds before the first retry after a fault, doubled with every further one up to the ceiling.
    """

    answers: int
    faults: int
    rate_limited: float
    backoff: float
    backoff_max: float
