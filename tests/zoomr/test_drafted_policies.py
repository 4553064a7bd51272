"""Three methods written from zoomr/policies/README.md alone: a method needs no change outside its own file."""

from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
from torch.nn.functional import max_pool1d

from tests.zoomr.decoding import decoding
from tests.zoomr.test_modes_agree import CONTINUATIONS, PROMPTS, assert_same, logits
from tests.zoomr.tiny import prompt_of, story
from zoomr import Full
from zoomr.policies import Budgeted, Keeps, Reading, Records, Resident, Site, SlotView, State
from zoomr.policies.base import Lower


@dataclass(frozen=True, kw_only=True)
class DraftedRKV(Budgeted):
    """Importance to the last queries, less redundancy among the keys, mixed by `mix`; one choice a KV head."""

    mix: float = 0.1
    interval: int = 6  # type: ignore[misc]
    history: int = 4  # type: ignore[misc]

    records: ClassVar[Records] = Records.HISTORY | Records.KEYS
    scope: ClassVar[str] = "head"

    def keep_last(self, prompt):
        return self.history

    def rank(self, view: SlotView):
        heads, held = view.keys().shape[2], view.held
        absent = torch.where(view.present, view.positions, 2**62)
        order = absent.argsort(dim=-1)[..., :held].expand(*view.keys().shape[:3], held)
        keys = view.keys().float().gather(-2, order[..., None].expand(*order.shape, view.keys().shape[-1]))
        queries = view.history.float().transpose(2, 3).unflatten(2, (heads, -1))
        scores = (queries @ keys[:, :, :, None].transpose(-1, -2) * view.scaling).amax(dim=3)
        scores[..., held - self.history :] = float("-inf")
        importance = max_pool1d(scores.softmax(-1).mean(-2).flatten(0, 2), 7, stride=1, padding=3)
        unit = keys / (keys.norm(dim=-1, keepdim=True) + 1e-8)
        alike = unit @ unit.transpose(-1, -2)
        alike = alike.masked_fill(torch.eye(held, dtype=torch.bool), 0.0)
        newest = ((alike > 0.5) * torch.arange(1, held + 1)).argmax(-1, keepdim=True)
        redundancy = alike.scatter(-1, newest, 0.0).mean(-2).softmax(-1)
        worth = self.mix * importance.view(order.shape) - (1 - self.mix) * redundancy
        return torch.zeros(*order.shape[:-1], absent.shape[-1]).scatter(-1, order, worth)


@dataclass(frozen=True, kw_only=True)
class DraftedQuest(Keeps):
    """Each query head attends to the `pages` pages whose keys' bounds promise most, the newest always among them."""

    pages: int = 3
    size: int = 4

    chooses: ClassVar[bool] = True

    def start(self, site: Site) -> State:
        return Pages(self)


class Pages(State):
    def __init__(self, policy: DraftedQuest):
        self.policy, self.most = policy, 0

    def read(self, layer, query, resident: Resident) -> Reading:
        size = self.policy.size
        pad = -resident.keys.shape[2] % size
        keys = torch.nn.functional.pad(resident.keys, (0, 0, 0, pad)).unflatten(2, (-1, size))
        there = torch.nn.functional.pad(resident.present, (0, pad)).unflatten(2, (-1, size))[..., None]
        least = keys.masked_fill(~there, float("inf")).amin(3)
        most = keys.masked_fill(~there, float("-inf")).amax(3)
        grouped = query[:, :, 0].unflatten(1, (keys.shape[1], -1))[:, :, :, None]
        bounds = torch.maximum(grouped * least[:, :, None], grouped * most[:, :, None]).sum(-1).flatten(1, 2)
        number = torch.tensor([clock.held for clock in resident.clocks])[:, None, None]
        page = torch.arange(bounds.shape[-1])
        bounds = bounds.masked_fill(page == (number - 1) // size, float("inf"))
        bounds = bounds.masked_fill(page * size >= number, float("-inf"))
        chosen = bounds.topk(min(self.policy.pages, len(page)), dim=-1).indices
        slots = (chosen[..., None] * size + torch.arange(size)).flatten(2)
        self.most = max(self.most, int((slots < number).sum(-1).max()))
        return Reading(slots=torch.where(slots < number, slots, -1))


@dataclass(frozen=True, kw_only=True)
class DraftedTail(Budgeted):
    """A KV is worth what its key sums to; what goes over the budget stays, in four bits."""

    interval: int = 5  # type: ignore[misc]

    records: ClassVar[Records] = Records.KEYS
    scope: ClassVar[str] = "head"
    lower: ClassVar[Lower] = "int4"
    to: ClassVar[str] = "lower"

    def rank(self, view: SlotView):
        return view.keys().float().sum(dim=-1)


SMALL = {
    "rkv": DraftedRKV(budget=16),
    "rkv_prompt": DraftedRKV(budget=26, keep_prompt=True),
    "quest": DraftedQuest(),
    "tail": DraftedTail(budget=16),
}
AMPLE = {"rkv": DraftedRKV(budget=999), "quest": DraftedQuest(pages=99), "tail": DraftedTail(budget=999)}


@pytest.mark.parametrize("name", SMALL)
def test_a_ragged_batch_equals_each_row_under_a_mask(model, tokenizer, name):
    expected, alone = logits(model, tokenizer, SMALL[name], mode="mask", batch_size=1)
    found, batched = logits(model, tokenizer, SMALL[name], mode="gather", batch_size=2)
    full, _ = logits(model, tokenizer, Full(), batch_size=3)
    assert_same(found, expected)
    assert [one.active_tokens_peak for one in batched] == [one.active_tokens_peak for one in alone]
    assert min((one - other).abs().max() for one, other in zip(found, full, strict=True)) > 1e-2


@pytest.mark.parametrize("mode", ["mask", "gather"])
@pytest.mark.parametrize("name", AMPLE)
def test_where_nothing_is_dropped_it_is_the_full_cache(model, tokenizer, name, mode):
    found, _ = logits(model, tokenizer, AMPLE[name], mode=mode, batch_size=2)
    full, _ = logits(model, tokenizer, Full(), batch_size=2)
    assert_same(found, full)


@pytest.mark.parametrize("name", [name for name, policy in SMALL.items() if isinstance(policy, Budgeted)])
def test_the_budget_is_not_passed(model, name):
    policy, row_lengths = SMALL[name], (9, 3, 2)
    batch, _ = decoding(model, policy, [prompt_of(n, n) for n in row_lengths], [story(n) for n in row_lengths])
    steps = 0
    while batch.rows:
        for row, clock in enumerate(batch.rows):
            _, present, _ = batch.memory.tiers.slots([row], slice(None))
            assert (present.sum(-1) == clock.held).all()
            assert clock.held <= policy.budget
        batch.step()
        steps += 1
    assert steps > 3 * policy.budget


def test_quest_attends_to_its_pages(model):
    policy = SMALL["quest"]
    batch, _ = decoding(model, policy, PROMPTS, CONTINUATIONS)
    while batch.rows:
        batch.step()
    assert batch.memory.state.most == policy.pages * policy.size
