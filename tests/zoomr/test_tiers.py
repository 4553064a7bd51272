"""Tiers: where KVs go, that none is lost or scrambled, and that the bytes are what they seem."""

import gc

import pytest
import torch

from tests.zoomr.decoding import decoding
from tests.zoomr.tiny import make_model, policies, prompt_of, story
from zoomr import H2O, SnapKV, StreamingLLM, ZoomR, teacher_forced
from zoomr.policies import Change, Shape
from zoomr.policies.base import OTHER
from zoomr.tiers import LayerwiseTiers, LowPrecision, MaskTiers, Size, SlotTiers
from zoomr.tiers.host import HostRow, runs
from zoomr.tiers.low import rounded

SHAPE = Shape(layers=2, query_heads=4, kv_heads=2, key_dim=4, value_dim=4)


def size_of(batch=3, block=8):
    return Size(SHAPE, batch, torch.float32, torch.device("cpu"), block)


def fingerprint(row, position):
    """A KV that tells its row, position, layer, head and kind: (L, 2, H, d)."""
    kv = torch.zeros(2, 2, 2, 4)
    for layer in range(2):
        for kind in range(2):
            for head in range(2):
                kv[layer, kind, head] = torch.tensor([row, position, layer, kind * 10 + head], dtype=torch.float32)
    return kv


def admit(store, row, length):
    kv = torch.stack([fingerprint(row, position) for position in range(length)], dim=3)
    store.admit(row, list(kv[:, 0]), list(kv[:, 1]), None)


def step(store, positions):
    """Write one token a row; returns the keys, values and mask that each layer's attention would see."""
    store.open(positions)
    new = torch.stack([fingerprint(row, position) for row, position in enumerate(positions)])
    seen = {}
    for layer in range(2):
        store.append(layer, new[:, layer, 0][:, :, None], new[:, layer, 1][:, :, None])
        seen[layer] = tuple(None if part is None else part.clone() for part in store.read(layer))
    return seen


def seen_positions(store, seen, row):
    """Positions that the row attends to, checked in every layer, head and kind."""
    found = []
    for layer, (*pair, mask) in seen.items():
        for kind, tensor in enumerate(pair):
            for head in range(2):
                slots = tensor[row, head]
                if mask is not None:
                    slots = slots[mask[row, min(head, mask.shape[1] - 1), 0]]
                assert (slots[:, 0] == row).all() and (slots[:, 2] == layer).all()
                assert (slots[:, 3] == kind * 10 + head).all()
                found.append(sorted(slots[:, 1].int().tolist()))
    assert all(one == found[0] for one in found)
    return found[0]


def test_runs_of_positions():
    assert runs(torch.tensor([], dtype=torch.int64)) == []
    assert runs(torch.tensor([0, 1, 2, 5, 7, 8])) == [(0, 3), (5, 6), (7, 9)]


RECALLING = {
    "mask": MaskTiers,
    "slots": lambda size: SlotTiers(size, host=True),
    "layerwise": lambda size: LayerwiseTiers(size, host=True),
}


@pytest.mark.parametrize("name", RECALLING)
def test_k24_any_set_can_be_installed_and_nothing_is_scrambled(name):
    """Rows of different age, growth over block borders, sets that leave and come back."""
    store, generator = RECALLING[name](size_of()), torch.Generator().manual_seed(0)
    lengths = [5, 1, 9]
    for row, length in enumerate(lengths):
        admit(store, row, length)
    active = [set(range(length)) for length in lengths]
    for number in range(60):
        seen = step(store, lengths)
        for row in range(3):
            active[row].add(lengths[row])
            assert seen_positions(store, seen, row) == sorted(active[row])
        lengths = [length + 1 for length in lengths]
        due = [row for row in range(3) if (number + row) % 4 == 0]
        if due:
            chosen = torch.zeros(len(due), max(lengths), dtype=torch.bool)
            for place, row in enumerate(due):
                chosen[place, : lengths[row]] = torch.rand(lengths[row], generator=generator) < 0.4
                chosen[place, lengths[row] - 1] = True
                active[row] = set(chosen[place].nonzero().flatten().tolist())
            spans = [[(p, p + 1, OTHER) for p in own.nonzero().flatten().tolist()] for own in chosen]
            store.apply(Change(due, [], spans=spans), [lengths[row] for row in due])
    start, stop = 3, 8
    expected = torch.stack([fingerprint(2, position)[:, 0] for position in range(start, stop)], dim=2)
    assert torch.equal(store.keys_of(2, start, stop), expected)


@pytest.mark.parametrize("make", [MaskTiers, SlotTiers], ids=lambda make: make.__name__)
@pytest.mark.parametrize("groups", [(1, 1), (2, 1), (2, 2)], ids=str)
def test_k10_k24_eviction_by_group_drops_what_was_named(make, groups):
    """K10: heads and layers may hold different positions; one slot at a time, or several."""
    store, generator = make(size_of(), groups), torch.Generator().manual_seed(1)
    admit(store, 0, 6)
    kept = {(layer, head): set(range(6)) for layer in range(groups[0]) for head in range(groups[1])}
    for position in range(6, 60):
        seen = step(store, [position])
        for (layer, head), positions in kept.items():
            positions.add(position)
            for real_layer in range(2) if groups[0] == 1 else [layer]:
                for real_head in range(2) if groups[1] == 1 else [head]:
                    keys, mask = seen[real_layer][0][0, real_head], seen[real_layer][2]
                    if mask is not None:
                        keys = keys[mask[0, min(real_head, mask.shape[1] - 1), 0]]
                    assert sorted(keys[:, 1].int().tolist()) == sorted(positions)
        number = [0, 1, 1, 1, 4][position % 5]
        if number and len(kept[0, 0]) > 8:
            positions, present, _ = store.slots([0], slice(None))
            score = torch.rand(present.shape, generator=generator).masked_fill(~present, 2.0)
            lowest = score.topk(number, largest=False).indices
            at = positions.expand(present.shape).gather(-1, lowest)
            for (layer, head), held in kept.items():
                held -= set(at[layer, 0, head].tolist())
            store.apply(Change([0], [], leave=lowest), [position + 1])


def test_host_rows_hold_every_token_once_in_blocks():
    host = HostRow(size_of(block=8))
    kv = torch.randn(2, 2, 2, 30, 4)
    for start, stop in [(0, 3), (3, 3 + 8), (11, 12), (12, 30)]:
        host.append([kv[:, part, :, start:stop] for part in range(2)])
    assert host.length == 30 and len(host.blocks) == 4
    spans = [(2, 9), (9, 10), (15, 30)]
    found = host.read(spans, torch.device("cpu"))
    for part in range(2):
        expected = torch.cat([kv[:, part, :, start:stop] for start, stop in spans], dim=2)
        assert torch.equal(found[part], expected)


def run_batch(policy, rows=2, prompt=7):
    targets = [story(seed, paragraphs=14, length=(18, 24)) for seed in range(rows)]
    runner, _ = decoding(make_model(), policy, [prompt_of(i, prompt) for i in range(rows)], targets)
    peak = 0
    while len(runner.rows) == rows:
        runner.step()
        peak = max([peak, *(row.held for row in runner.rows)])
    return runner, peak


@pytest.mark.parametrize("name", ["zoomr", "sumr", "streaming_llm", "h2o", "snapkv"])
def test_k11_storage_is_kv_heads_and_close_to_the_active_set(name):
    """K11; and no views: what tensors hold is what the tiers report, found by walking live tensors."""
    runner, peak = run_batch(policies(window=24, budget=48)[name])
    held, size = runner.memory.tensors(), runner.memory.tiers.size
    keys, values = held["device"]
    assert keys.shape[2] == size.shape.kv_heads == 2
    block = size.batch * size.block * size.token_bytes
    assert (
        sum(t.untyped_storage().nbytes() for t in (keys, values)) <= 1.25 * size.batch * peak * size.token_bytes + block
    )
    reported = {tensor.untyped_storage().data_ptr() for tier in held.values() for tensor in tier}
    for tensor in [item for item in gc.get_objects() if isinstance(item, torch.Tensor)]:
        wide = tensor.ndim >= 4 and tensor.shape[-1] == size.shape.key_dim and tensor.numel() > block // 16
        if wide and tensor is not runner.memory.notes.ring:
            assert tensor.untyped_storage().data_ptr() in reported, tuple(tensor.shape)


@pytest.mark.parametrize(
    "policy", [StreamingLLM(budget=60), H2O(budget=60), SnapKV(budget=200, interval=64)], ids=lambda p: type(p).__name__
)
@pytest.mark.parametrize("prompt", [30, 1500])
def test_a_long_prompts_buffer_is_given_back(policy, prompt):
    targets = [story(seed, paragraphs=2) for seed in range(2)]
    runner, _ = decoding(make_model(), policy, [prompt_of(i, prompt) for i in range(2)], targets)
    size = runner.memory.tiers.size
    while len(runner.rows) == 2:
        runner.step()
        held = sum(tensor.untyped_storage().nbytes() for tensor in runner.memory.tiers.kv)
        assert held <= size.batch * size.token_bytes * (1.25 * (policy.budget + 1) + size.block)


def test_the_host_holds_every_kv_once_and_is_dropped_with_its_row():
    runner, _ = run_batch(ZoomR(window=24))
    tiers = runner.memory.tiers
    for index, row in enumerate(runner.rows):
        held = tiers.hosts[index].length + tiers.used[index] - tiers.saved[index]
        assert held == row.position + 1
    free = [index for index in range(tiers.size.batch) if index >= len(runner.rows)]
    assert all(not tiers.hosts[index].blocks for index in free)


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_low_precision_returns_what_rounding_gives(bits):
    """Rows of different length, several arrivals, rows that move: equal to quantise and dequantise at once."""
    size = Size(Shape(2, 4, 2, 40, 24), 2, torch.float32, torch.device("cpu"), block=8)
    low, generator = LowPrecision(size, bits), torch.Generator().manual_seed(0)
    expected = {0: [], 1: []}
    for row, number in [(0, 3), (1, 40), (0, 33), (0, 1)]:
        kv = [torch.randn(2, 1, 2, number, width, generator=generator) for width in size.widths]
        low.take([row], kv)
        expected[row].append(rounded(*kv, bits))
    low.move(0, 1)
    for layer in range(2):
        parts, used = low.read(layer, 2)
        assert used.sum(-1).tolist() == [37, 37]
        for part in range(2):
            whole = torch.cat([arrival[part][layer, 0] for arrival in expected[0]], dim=1)
            for row in range(2):
                torch.testing.assert_close(parts[part][row, :, :37], whole, atol=1e-6, rtol=0)


def test_a_refresh_moves_only_the_difference(model, tokenizer):
    trace = []
    prompt, continuation = prompt_of(1, 6), story(4, paragraphs=6)
    teacher_forced(model, tokenizer, [prompt], [continuation], policy=ZoomR(window=8), trace=trace.append)
    token_bytes = 2 * 2 * 2 * 8 * 4
    saved, before = 0, set(range(6))
    for entry in trace:
        before |= set(range(saved, entry.position + 1))
        segments = [(entry.edges[2 * i], entry.edges[2 * i + 1]) for i in entry.zoomed]
        segments += [(entry.edges[2 * i + 1], entry.edges[2 * i + 2]) for i in entry.shown]
        after = set(range(6)) | set(range(max(0, entry.position - 7), entry.position + 1))
        after |= {position for start, stop in segments for position in range(start, stop)}
        new = entry.position + 1 - saved
        assert entry.moved_bytes == (new + len(after - before)) * token_bytes
        saved, before = entry.position + 1, after
    assert any(entry.zoomed for entry in trace)
