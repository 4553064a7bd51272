"""What a learned index should find at a boundary, said without labels; and, as an oracle, what ledgers really need.

A target is a distribution over the paragraphs (S, N) and a weight for each boundary (S,): most steps look up nothing,
and nothing is to be learnt from what their heads do.
"""

from itertools import pairwise

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from train.recording import Places

PRIOR = 20


def contrast(mass: Tensor, candidates: Tensor) -> tuple[Tensor, Tensor]:
    """Attention beyond habit: what a span gives to each paragraph, minus what the row had been giving to it.

    Heads look at some paragraphs whatever the step is, mostly at the latest. The habit is the mean share that the
    paragraph had at earlier boundaries; as it has no past at first, the mean share of paragraphs as recent as it counts
    like `PRIOR` boundaries of its own. Shares were larger when paragraphs were fewer, so at many boundaries nothing is
    above the habit; they weigh nothing. The others weigh as much as the square of the attention that their span gives
    to paragraphs at all: where there is little, heads are busy with the window.

    Parameters
    ----------
    mass : Tensor
        Attention of each span to each paragraph, (S, N).
    candidates : Tensor
        Paragraphs that have a finished summary, (S, N) bool.

    Returns
    -------
    shares : Tensor
        What is above the habit, as a distribution, (S, N).
    weights : Tensor
        (S,).
    """
    mass = mass * candidates
    share = _distribution(mass)
    own, seen = _before(share), _before(candidates.float())
    recent = _before(_from_latest(share, candidates)) / _before(candidates.float()).clamp(min=1)
    habit = (own + PRIOR * _from_latest(recent, candidates)) / (seen + PRIOR)
    shares = _distribution((share - habit).clamp(min=0) * candidates)
    return shares, mass.sum(1).square() * shares.sum(1)


def gradient(fall: Tensor, candidates: Tensor) -> tuple[Tensor, Tensor]:
    """Return the paragraphs that lower the span's loss where more attention goes to them.

    Parameters
    ----------
    fall : Tensor
        Minus the gradient of the loss with respect to a bias on the attention of each span to each paragraph, (S, N).
    candidates : Tensor
        Paragraphs that have a finished summary, (S, N) bool.

    Returns
    -------
    shares : Tensor
        The positive part as a distribution, (S, N).
    weights : Tensor
        Its sum, (S,).
    """
    positive = fall.clamp(min=0) * candidates
    return _distribution(positive), positive.sum(1)


def needed(ids: list[int], tokenizer: PreTrainedTokenizerBase, where: Places) -> dict[int, int]:
    """Return the paragraph that each look-up of a ledger needs, by the position of the name that is looked up.

    Empty for a row that is no ledger.
    """
    tokens = tokenizer.convert_ids_to_tokens(ids)
    told: dict[str, int] = {}  # in which paragraph an account was worked out
    for number, paragraph in enumerate(where.paragraphs):
        for before, name in pairwise(tokens[paragraph.start : paragraph.stop]):
            if before == " for":
                told.setdefault(name, number)
    names = [position for position in range(where.prompt + 1, len(ids)) if tokens[position - 1] == " See"]
    return {position: told[tokens[position]] for position in names if tokens[position] in told}


def labels(needs: dict[int, int], where: Places) -> tuple[Tensor, Tensor]:
    """Return the oracle's target: the needed paragraph at look-ups (weight 1), nothing elsewhere (weight 0)."""
    shares = torch.zeros(len(where.boundaries), len(where.ends))
    for number, (position, finished) in enumerate(zip(where.boundaries, where.finished, strict=True)):
        paragraph = needs.get(position, finished)
        if paragraph < finished:
            shares[number, paragraph] = 1
    return shares, shares.sum(1)


def _distribution(values: Tensor) -> Tensor:
    """Each row divided by its sum; a row of zeros stays one."""
    return values / values.sum(1, keepdim=True).clamp(min=1e-12)


def _before(values: Tensor) -> Tensor:
    """Sum over all earlier boundaries."""
    return values.cumsum(0) - values


def _from_latest(values: Tensor, candidates: Tensor) -> Tensor:
    """Each row with its paragraphs numbered from the latest finished one (and back again)."""
    places = candidates.sum(1, keepdim=True) - 1 - torch.arange(values.shape[1])
    return values.gather(1, places.clamp(min=0)) * candidates
