"""What the official code of published methods computes (vectors/README.md), and views to ask a policy the same."""

import json
from pathlib import Path

import torch

from zoomr.policies import SlotView

FOLDER = Path(__file__).parent / "vectors"
CASES = ["random", "structured"]


def vectors(name):
    return json.loads((FOLDER / f"{name}.json").read_text())


def tensors(case):
    """Queries (4, 112, 16), keys and values (2, 112, 16)."""
    made = vectors("inputs")[case]
    return [torch.tensor(made[name]) for name in "qkv"]


def slot_view(case, positions, asking, prompt=0):
    """One layer and row that holds these positions (2, n), stored in disorder with a gap, asked by these queries."""
    q, k, v = tensors(case)
    positions = torch.as_tensor(positions)
    shuffled = torch.randperm(positions.shape[-1], generator=torch.Generator().manual_seed(0))
    positions = positions.expand(2, -1)[:, shuffled]
    absent = torch.full((2, 1), 999)
    places = torch.cat([positions[:, :3], absent, positions[:, 3:]], dim=1)

    def stored(x):
        return x.gather(1, places.clamp(max=111)[..., None].expand(-1, -1, 16))[None, None]

    last = max(asking)
    return SlotView(
        positions=places[None, None],
        present=(places != 999)[None, None],
        last=torch.tensor(last).view(1, 1, 1, 1),
        prompt=torch.tensor(prompt).view(1, 1, 1, 1),
        held=positions.shape[-1],
        seeds=[0],
        received=None,
        history=q[:, asking].transpose(0, 1)[None, None],
        scaling=0.25,
        keys=lambda: stored(k),
        values=lambda: stored(v),
    )


def worth_by_position(policy, view):
    """A dictionary of positions and ranks for each KV head."""
    worth = policy.rank(view).expand(1, 1, 2, -1)[0, 0]
    places = view.positions.expand(1, 1, 2, -1)[0, 0]
    return [
        {place: value for place, value in zip(*pair, strict=True) if place != 999}
        for pair in zip(places.tolist(), worth.tolist(), strict=True)
    ]


def assert_kept(worth, kept, spared, margin):
    """Of the positions that may be dropped, those that the official code keeps are worth most, up to ties."""
    kept = set(kept) - set(spared)
    dropped = set(worth) - kept - set(spared)
    assert min(worth[place] for place in kept) >= max(worth[place] for place in dropped) - 1e-6
    if margin > 1e-6:
        best = sorted(set(worth) - set(spared), key=worth.__getitem__, reverse=True)[: len(kept)]
        assert set(best) == kept
