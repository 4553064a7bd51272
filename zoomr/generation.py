"""Generation with a policy: `generate` and `stream`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, get_args

from zoomr.compat import check_attention
from zoomr.errors import UserError
from zoomr.policies.base import Policy, derived_seed
from zoomr.prompts import Prompt, as_prompts, token_ids
from zoomr.results import Generation
from zoomr.rows import Request
from zoomr.runner import Decoding, Mode, Runner, TokenCallback, attending, serve
from zoomr.sampling import Sampler, Sampling
from zoomr.summaries.segments import boundary_table, delimiter_ids
from zoomr.trace import Trace


def generate(
    model: Any,
    tokenizer: Any,
    prompts: Sequence[Prompt],
    *,
    policy: Policy,
    max_new_tokens: int,
    temperature: float = 0.0,
    top_p: float = 1.0,
    samples: int = 1,
    seed: int = 0,
    seeds: Sequence[int] | None = None,
    batch_size: int = 8,
    mode: Mode = "gather",
    boundaries: Iterable[int] | None = None,
    stop_ids: Iterable[int] | None = None,
    trace: Trace | None = None,
    token_callback: TokenCallback | None = None,
) -> list[Generation]:
    """Generate `samples` continuations of every prompt.

    Parameters
    ----------
    model, tokenizer
        A transformers causal language model of full-attention layers, and its tokenizer.
    prompts : sequence
        Each a string (tokenised as it is), a list of chat messages (rendered with the chat template) or a list of
        token ids.
    policy : Policy
        What to keep in the KV cache, e.g. `ZoomR(c=2, k=2, window=512)`.
    max_new_tokens : int
    temperature, top_p : float
        Temperature 0 is greedy.
    samples : int
        Samples a prompt; the prompt is run once for all of them.
    seed, seeds
        One seed from which every sample's own is derived, or one a sample, prompt by prompt.
    batch_size : int
        Rows decoded together. It does not change what a row samples, but in half precision rounding may.
    mode : "gather" or "mask"
        Evict and offload for real, or keep the full cache and mask it. The outcome is the same.
    boundaries : iterable of int or None
        Token ids that are semantic boundaries; by default those of `boundary_table(tokenizer)`.
    stop_ids : iterable of int or None
        Token ids that end a row; by default all end ids of the model's generation configuration and the tokenizer's.
    trace : callable or None
        Called with the `Refresh` of every refresh.
    token_callback : callable or None
        Called with prompt index, sample index and token id of every token.

    Returns
    -------
    list of Generation
        Prompt by prompt, sample by sample.

    Raises
    ------
    UserError
        An argument cannot be used, or the model has layers that are not full attention.
    """
    finished = stream(
        model,
        tokenizer,
        prompts,
        policy=policy,
        max_new_tokens=max_new_tokens,
        temperature=temperature,
        top_p=top_p,
        samples=samples,
        seed=seed,
        seeds=seeds,
        batch_size=batch_size,
        mode=mode,
        boundaries=boundaries,
        stop_ids=stop_ids,
        trace=trace,
        token_callback=token_callback,
    )
    return sorted(finished, key=lambda generation: (generation.prompt, generation.sample))


def stream(
    model: Any,
    tokenizer: Any,
    prompts: Sequence[Prompt],
    *,
    policy: Policy,
    max_new_tokens: int,
    temperature: float = 0.0,
    top_p: float = 1.0,
    samples: int = 1,
    seed: int = 0,
    seeds: Sequence[int] | None = None,
    batch_size: int = 8,
    mode: Mode = "gather",
    boundaries: Iterable[int] | None = None,
    stop_ids: Iterable[int] | None = None,
    trace: Trace | None = None,
    token_callback: TokenCallback | None = None,
) -> Iterator[Generation]:
    """As `generate`, yielding each sample when it is finished; waiting requests take finished rows' places."""
    for name, count in (("max_new_tokens", max_new_tokens), ("samples", samples), ("batch_size", batch_size)):
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise UserError(f"{name}={count}: a whole number of at least 1 is needed.")
    sampling = Sampling(temperature, top_p)
    if mode not in get_args(Mode):
        raise UserError(f"mode={mode}: one of {', '.join(get_args(Mode))} is needed.")
    decoding = Decoding(
        policy=policy,
        boundaries=frozenset(boundary_table(tokenizer) if boundaries is None else boundaries),
        stop_ids=frozenset(end_ids(model, tokenizer) if stop_ids is None else stop_ids),
        delimiters=delimiter_ids(tokenizer),
        mode=mode,
        trace=trace,
        token_callback=token_callback,
    )
    requests = list(_requests(tokenizer, as_prompts(prompts), samples, max_new_tokens, seed, seeds))
    check_attention(model.config, max((len(one.token_ids) for one in requests), default=0) + max_new_tokens)
    for request in requests:
        policy.check(len(request.token_ids))
    size = max(1, min(batch_size, len(requests)))
    sampler = Sampler(sampling, size, max_new_tokens, model.device)
    with attending(model):
        for row, status in serve(Runner(model, decoding, sampler, size), requests):
            shown = row.tokens[:-1] if status == "stop" else row.tokens
            text = tokenizer.decode(shown, skip_special_tokens=False, clean_up_tokenization_spaces=False)
            request = row.request
            yield Generation(request.prompt, request.sample, request.seed, row.tokens, text, status, row.usage())


def end_ids(model: Any, tokenizer: Any) -> set[int]:
    """All end ids of a model's generation configuration, and its tokenizer's."""
    declared = model.generation_config.eos_token_id
    ids = declared if isinstance(declared, list) else [declared]
    return {token for token in [*ids, tokenizer.eos_token_id] if token is not None}


def _requests(
    tokenizer: Any, prompts: Sequence[Prompt], samples: int, limit: int, seed: int, seeds: Sequence[int] | None
) -> Iterator[Request]:
    if seeds is not None and len(seeds) != len(prompts) * samples:
        raise UserError(f"seeds: {len(seeds)} given for {len(prompts)} prompts of {samples} samples")
    for index, prompt in enumerate(prompts):
        ids = token_ids(tokenizer, prompt)
        if not ids:
            raise UserError(f"prompts: number {index} has no tokens")
        for sample in range(samples):
            number = index * samples + sample
            own = seeds[number] if seeds is not None else derived_seed(seed, number)
            yield Request(index, sample, own, ids, limit, is_last_sample=sample == samples - 1)
