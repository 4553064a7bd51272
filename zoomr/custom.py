"""The decoding loop as a generation method of transformers: `model.generate(custom_generate=decode, policy=...)`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from transformers import GenerationConfig, LogitsProcessorList, StoppingCriteriaList
from transformers.generation import BaseStreamer, EosTokenCriteria, GenerateDecoderOnlyOutput, MaxLengthCriteria

from zoomr.compat import check_attention
from zoomr.errors import UserError
from zoomr.policies.base import Policy
from zoomr.policies.summarized import Summarized
from zoomr.rows import Request
from zoomr.runner import Decoding, Mode, Runner, attending, serve
from zoomr.sampling import invert
from zoomr.summaries.segments import boundary_table, delimiter_ids
from zoomr.trace import Trace

# What transformers hands over of its own accord, and what could be asked of its own loop.
TAKEN = ("attention_mask", "cache", "cache_position", "logits_to_keep", "past_key_values", "position_ids", "use_cache")
OUTPUTS = ("output_scores", "output_logits", "output_attentions", "output_hidden_states")


class ProcessorChooser:
    """Next tokens by transformers' logits processors, which see what `generate` would show them.

    Parameters
    ----------
    prompts : (B, T) int64
        As they came, padding included.
    processors : LogitsProcessorList
    sampled : bool
    limit : int
        Most new tokens.
    padding : int
        What follows a row's end.
    """

    def __init__(self, prompts: Tensor, processors: LogitsProcessorList, sampled: bool, limit: int, padding: int):
        self.length = prompts.shape[1]
        self.ids = torch.nn.functional.pad(prompts, (0, limit), value=padding)
        self.processors, self.sampled, self.limit = processors, sampled, limit
        self._request_of: dict[int, int] = {}
        self._uniforms: dict[int, Tensor] = {}

    def admit(self, row: int, request: Request) -> None:
        """See `Chooser.admit`."""
        self._request_of[row] = request.prompt
        if self.sampled:
            generator = torch.Generator().manual_seed(request.seed)
            self._uniforms[request.prompt] = torch.rand(self.limit, generator=generator, dtype=torch.float64)

    def move(self, source: int, target: int) -> None:
        """See `Chooser.move`."""
        self._request_of[target] = self._request_of[source]

    def __call__(self, logits: Tensor, rows: list[int], drawn: list[int]) -> list[int]:
        """See `Chooser.__call__`."""
        requests = [self._request_of[row] for row in rows]
        # processors may hold something for every row of the batch, so that ended rows are shown to them too
        everyone = torch.zeros(len(self.ids), logits.shape[-1], device=logits.device)
        everyone[requests] = logits.float()
        scores = self.processors(self.ids[:, : self.length], everyone)[requests]  # type: ignore[arg-type]
        if self.sampled:
            numbers = [self._uniforms[request][number] for request, number in zip(requests, drawn, strict=True)]
            tokens = invert(scores, torch.stack(numbers).to(logits.device))
        else:
            tokens = scores.argmax(-1).tolist()
        self.ids[requests, self.length] = torch.tensor(tokens, device=self.ids.device)
        self.length += 1
        return tokens


def decode(
    model: Any,
    input_ids: Tensor,
    *,
    logits_processor: LogitsProcessorList,
    stopping_criteria: StoppingCriteriaList,
    generation_config: GenerationConfig,
    policy: Policy,
    text_tokenizer: Any = None,
    boundaries: Iterable[int] | None = None,
    delimiters: tuple[int | None, int | None] | None = None,
    mode: Mode = "gather",
    trace: Trace | None = None,
    token_streamer: BaseStreamer | None = None,
    **model_kwargs: Any,
) -> Tensor | GenerateDecoderOnlyOutput:
    """Decode a batch for `model.generate(..., custom_generate=zoomr.decode, policy=ZoomR(), text_tokenizer=tokenizer)`.

    Parameters
    ----------
    model, input_ids, logits_processor, stopping_criteria, generation_config, model_kwargs
        What transformers prepares. Sampling is seeded from torch's global generator.
    policy : Policy
    text_tokenizer : transformers tokenizer or None
        Gives the boundaries and delimiters (transformers keeps the keyword `tokenizer` for itself).
    boundaries, delimiters
        Token ids of the boundaries, and of begin and end of a summary, instead of a tokenizer.
    mode, trace
        See `zoomr.generate`.
    token_streamer : transformers streamer or None
        Is given the prompt, every token of a single row, and the end (transformers keeps `streamer` for itself).

    Returns
    -------
    LongTensor (B, T + new)
        Padded with the pad id after a row's end; or transformers' output object where the configuration asks for it.

    Raises
    ------
    UserError
        For beams, criteria other than end ids and lengths, a cache that is not empty, and whatever else transformers
        hands over that would have no effect.
    """
    _refuse(stopping_criteria, generation_config, model_kwargs)
    if token_streamer is not None and len(input_ids) > 1:
        raise UserError(f"token_streamer: one row can be streamed, not {len(input_ids)}")
    if text_tokenizer is not None:
        boundaries = boundary_table(text_tokenizer) if boundaries is None else boundaries
        delimiters = delimiter_ids(text_tokenizer) if delimiters is None else delimiters
    if isinstance(policy, Summarized) and (boundaries is None or delimiters is None):
        raise UserError("text_tokenizer: this policy needs the tokenizer, or boundaries and delimiters")
    attention_mask = model_kwargs.get("attention_mask")  # None when all ones
    kept = torch.ones_like(input_ids) if attention_mask is None else attention_mask
    positions = model_kwargs.get("position_ids")
    if positions is not None and not torch.equal(positions * kept, ((kept.cumsum(-1) - 1) * kept).expand_as(positions)):
        raise UserError("position_ids: zoomr.decode counts a row's own tokens; other positions are not supported")
    limit = generation_config.max_length - input_ids.shape[1]
    seeds = torch.randint(2**62, (input_ids.shape[0],)).tolist() if generation_config.do_sample else None
    requests = [
        Request(row, 0, seeds[row] if seeds else row, input_ids[row][kept[row].bool()].tolist(), limit, True)
        for row in range(input_ids.shape[0])
    ]
    decoding = Decoding(
        policy=policy,
        boundaries=frozenset(boundaries or ()),
        stop_ids=frozenset(
            token
            for criterion in stopping_criteria
            if isinstance(criterion, EosTokenCriteria)
            for token in criterion.eos_token_id.flatten().tolist()
        ),
        delimiters=delimiters or (None, None),
        mode=mode,
        trace=trace,
        token_callback=None
        if token_streamer is None
        else lambda prompt, sample, token: token_streamer.put(torch.tensor([token])),
    )
    sampled, padding = generation_config.do_sample, generation_config.pad_token_id or 0
    chooser = ProcessorChooser(input_ids, logits_processor, sampled, limit, padding)
    check_attention(model.config, generation_config.max_length)
    for request in requests:
        policy.check(len(request.token_ids))
    if token_streamer is not None:
        token_streamer.put(input_ids.cpu())
    with attending(model):
        for _ in serve(Runner(model, decoding, chooser, len(requests)), requests):
            pass
    if token_streamer is not None:
        token_streamer.end()
    sequences = chooser.ids[:, : chooser.length].clone()
    if generation_config.return_dict_in_generate:
        return GenerateDecoderOnlyOutput(sequences=sequences)  # type: ignore[arg-type]
    return sequences


def _refuse(criteria: StoppingCriteriaList, config: GenerationConfig, model_kwargs: dict[str, Any]) -> None:
    if config.num_beams > 1:
        raise UserError("num_beams: zoomr does not support beam search; use num_beams=1")
    others = [type(one).__name__ for one in criteria if not isinstance(one, EosTokenCriteria | MaxLengthCriteria)]
    if others:
        raise UserError(f"stopping_criteria: zoomr.decode stops at end ids and lengths, not by {', '.join(others)}")
    asked = [name for name in OUTPUTS if getattr(config, name, False)]
    if asked:
        raise UserError(f"{asked[0]}: zoomr.decode returns sequences alone")
    unknown = sorted(name for name, value in model_kwargs.items() if name not in TAKEN and value is not None)
    if unknown:
        raise UserError(f"{unknown[0]}: zoomr.decode does not know this argument, which would have no effect")
    given = model_kwargs.get("cache", model_kwargs.get("past_key_values"))
    if given is not None and given.get_seq_length() > 0:
        raise UserError("past_key_values: zoomr.decode starts from an empty cache; pass the whole prompt")
