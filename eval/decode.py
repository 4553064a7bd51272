"""From requests to finished samples: prompts, policy and the decoder."""

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig

from eval.cells import Request, method_settings
from eval.checkpoint import Checkpoint
from eval.policies import make_policy
from zoomr.errors import UserError

if TYPE_CHECKING:
    from zoomr.trace import Refresh


def decode(
    missing: list[Request], cfg: DictConfig, checkpoint: Checkpoint, matched: int | None
) -> Iterator[tuple[Request, dict[str, Any]]]:
    """Generate samples with continuous batching.

    Parameters
    ----------
    missing : list of Request
        What to generate.
    cfg : DictConfig
        The composed configuration.
    checkpoint : Checkpoint
        The model.
    matched : int or None
        Tokens that a budget of `match` stands for.

    Yields
    ------
    tuple of Request and dict
        A request and its generation, in the order of finishing. When the device is out of memory the batch is halved
        and the unfinished requests start again, each with its own seed.

    Raises
    ------
    UserError
        When not even one row fits.
    """
    import torch

    from zoomr import stream
    from zoomr.prompts import render_prompt

    model, tokenizer = checkpoint.load(cfg.device)
    prompts = {
        request.problem.id: render_prompt(
            tokenizer, request.problem.system or cfg.system_prompt or "", request.problem.user
        )
        for request in missing
    }
    _, settings = method_settings(cfg.method)
    if settings.get("budget") is not None:
        settings["budget"] = budget_tokens(settings["budget"], cfg, model, max(map(len, prompts.values())), matched)
    batch = cfg.batch_size
    while missing:
        finished: set[str] = set()
        refreshes: dict[int, list[Refresh]] = {}
        try:
            for generation in stream(
                model,
                tokenizer,
                [prompts[request.problem.id] for request in missing],
                policy=policy_for(settings, missing, model),
                max_new_tokens=cfg.generation.max_new_tokens,
                temperature=cfg.generation.temperature,
                top_p=cfg.generation.top_p,
                seeds=[request.seed for request in missing],
                batch_size=batch,
                trace=lambda refresh, kept=refreshes: kept.setdefault(refresh.prompt, []).append(refresh),
            ):
                request = missing[generation.prompt]
                finished.add(request.id)
                kept = refreshes.pop(generation.prompt, [])
                row = generation.to_dict() | {
                    "prompt_hash": digest(prompts[request.problem.id]),
                    "consensus": series(kept),
                }
                if request.traced:
                    row["trace"] = full_trace(tokenizer, prompts[request.problem.id], generation.token_ids, kept)
                yield request, row
        except torch.OutOfMemoryError as error:
            if batch == 1:
                raise UserError("batch_size=1 does not fit into the device's memory.") from error
            batch = max(1, batch // 2)
            print(f"out of memory: going on with batch_size={batch}")
            torch.cuda.empty_cache()
        missing = [request for request in missing if request.id not in finished]


def digest(ids: list[int]) -> str:
    """Short digest of a prompt's token ids."""
    return hashlib.sha256(str(ids).encode()).hexdigest()[:12]


def series(refreshes: "list[Refresh]") -> list[list[float | int | None]]:
    """What every sample keeps of its refreshes: finished summaries, agreeability (paper, section 4), active tokens."""
    return [[refresh.finished, refresh.agreeability, refresh.active] for refresh in refreshes]


def full_trace(tokenizer: Any, prompt: list[int], tokens: list[int], refreshes: "list[Refresh]") -> dict[str, Any]:
    """All that eval.view shows of a sample: the text of every token, the prompt's length, and every refresh.

    Here a refresh's ``position`` is the number of tokens before the first one that its active set serves.
    """
    pieces = [tokenizer.decode([token], skip_special_tokens=False) for token in (*prompt, *tokens)]
    rows = [refresh.to_dict() | {"position": refresh.position + 1} for refresh in refreshes]
    edges = rows[-1]["edges"] if rows else [len(prompt)]
    kept = [{key: value for key, value in row.items() if key not in ("prompt", "sample", "edges")} for row in rows]
    return {"pieces": pieces, "prompt_tokens": len(prompt), "edges": edges, "refreshes": kept}


def budget_tokens(budget: Any, cfg: DictConfig, model: Any, prompt_tokens: int, matched: int | None) -> int:
    """A cell's budget in tokens; a share is one of the longest prompt plus the token limit."""
    from zoomr.budgets import resolve_budget
    from zoomr.compat import shape_of

    return resolve_budget(
        budget,
        bytes_per_token=shape_of(model.config).bytes_per_token(model.dtype.itemsize),
        seen_tokens=prompt_tokens + cfg.generation.max_new_tokens,
        matched=matched,
    )


def policy_for(settings: dict[str, Any], requests: list[Request], model: Any = None) -> Any:
    """The policy for these requests; targets of `problem` are what each request's problem says it needs."""
    if settings.get("targets") != "problem":
        return make_policy("method", settings, model)
    targets = [request.problem.needs for request in requests]
    if None in targets:
        raise UserError(
            "method.targets=problem: these problems do not say what they need; use benchmark=ledger or stories."
        )
    return make_policy("method", settings, model, targets=targets)
