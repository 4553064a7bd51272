"""Stores: where KVs go, that none is lost or scrambled, and that the bytes are what they seem."""

import gc

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from zoomr.batch import Batch
from zoomr.plan import Plan
from zoomr.stores import LayerwiseStore, MaskStore, SlotEvictStore, SlotStore, StoreSize
from zoomr.stores.host import HostRow
from zoomr.stores.moves import plan_moves, runs

from tests.zoomr.tiny import BEGIN, BOUNDARIES, CLOSE, make_model, policies, prompt_of, story
from zoomr import ZoomR, teacher_forced
from zoomr.compat import KVShape
from zoomr.forcing import Forcing
from zoomr.rows import Request

SHAPE = KVShape(layers=2, kv_heads=2, head_dim=4)


def size_of(batch=3, block=8):
    return StoreSize(SHAPE, batch, torch.float32, torch.device("cpu"), block)


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


def step(store, positions, rows=None):
    """Write one token a row; returns the (layer, kind) -> (n, H, S, d) that attention would see."""
    store.open(positions)
    new = torch.stack([fingerprint(row, position) for row, position in enumerate(positions)])
    return {layer: store.write(layer, new[:, layer, 0][:, :, None], new[:, layer, 1][:, :, None]) for layer in range(2)}


def seen_positions(store, seen, row):
    """Positions that the row attends to, checked in every layer, head and kind."""
    found = []
    for layer, pair in seen.items():
        mask = store.mask(layer)
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


@given(st.integers(1, 40).flatmap(lambda n: st.tuples(st.lists(st.booleans(), min_size=n, max_size=n), st.data())))
@settings(max_examples=80, deadline=None)
def test_moves_give_the_active_set_without_gaps(drawn):
    active, data = np.array(drawn[0]), drawn[1]
    held = np.array(
        data.draw(st.permutations(range(len(active))))[: data.draw(st.integers(0, len(active)))], dtype=np.int64
    )
    moves = plan_moves(held, active)
    slots = dict(enumerate(held.tolist()))
    moved = dict(zip(moves.holes[: len(moves.movers)].tolist(), [slots[s] for s in moves.movers], strict=True))
    slots |= moved | dict(zip(moves.holes[len(moves.movers) :].tolist(), moves.arriving.tolist(), strict=True))
    assert sorted(slots[slot] for slot in range(moves.size)) == np.flatnonzero(active).tolist()
    untouched = [slot for slot, position in enumerate(held) if active[position] and slot < moves.size]
    assert all(slots[slot] == held[slot] for slot in untouched)
    assert [p for start, stop in runs(moves.arriving) for p in range(start, stop)] == moves.arriving.tolist()


@pytest.mark.parametrize("make", [MaskStore, SlotStore, LayerwiseStore], ids=lambda make: make.__name__)
def test_k24_any_set_can_be_installed_and_nothing_is_scrambled(make):
    """Rows of different age, growth over block borders, sets that leave and come back."""
    store, generator = make(size_of()), torch.Generator().manual_seed(0)
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
            store.install(due, chosen)
    start, stop = 3, 8
    expected = torch.stack([fingerprint(2, position)[:, 0] for position in range(start, stop)], dim=2)
    assert torch.equal(store.keys_of(2, start, stop), expected)
    assert torch.equal(store.all_keys([2], stop)[:, 0, :, start:], expected)


@pytest.mark.parametrize("make", [MaskStore, SlotEvictStore], ids=lambda make: make.__name__)
@pytest.mark.parametrize("groups", [(1, 1), (2, 1), (2, 2)], ids=str)
def test_k10_k24_eviction_by_group_drops_what_was_named(make, groups):
    """K10: heads and layers may hold different positions; one slot at a time, or several with compaction."""
    store, generator = make(size_of(), groups, ledger=False), torch.Generator().manual_seed(1)
    admit(store, 0, 6)
    kept = {(layer, head): set(range(6)) for layer in range(groups[0]) for head in range(groups[1])}
    for position in range(6, 60):
        seen = step(store, [position])
        for (layer, head), positions in kept.items():
            positions.add(position)
            for real_layer in range(2) if groups[0] == 1 else [layer]:
                for real_head in range(2) if groups[1] == 1 else [head]:
                    keys, mask = seen[real_layer][0][0, real_head], store.mask(real_layer)
                    if mask is not None:
                        keys = keys[mask[0, min(real_head, mask.shape[1] - 1), 0]]
                    assert sorted(keys[:, 1].int().tolist()) == sorted(positions)
        number = [0, 1, 1, 1, 4][position % 5]
        if number and len(kept[0, 0]) > 8:
            positions, present, _ = store.slots([0])
            score = torch.rand(present.shape, generator=generator).masked_fill(~present, 2.0)
            lowest = score.topk(number, largest=False).indices
            at = positions.expand(present.shape).gather(-1, lowest)
            for (layer, head), held in kept.items():
                held -= set(at[layer, 0, head].tolist())
            store.drop([0], lowest)


def test_host_rows_hold_every_token_once_in_blocks():
    host = HostRow(size_of(block=8))
    kv = torch.randn(2, 2, 2, 30, 4)
    for start, stop in [(0, 3), (3, 3 + 8), (11, 12), (12, 30)]:
        host.append(kv[:, :, :, start:stop])
    assert host.length == 30 and len(host.blocks) == 4
    spans = [(2, 9), (9, 10), (15, 30)]
    expected = torch.cat([kv[:, :, :, start:stop] for start, stop in spans], dim=3)
    assert torch.equal(host.read(spans, torch.device("cpu")), expected)


def run_batch(name, rows=2, seen=400, block=32, monkeypatch=None):
    model = make_model()
    policy = policies(window=24, budget=48)[name]
    plan = Plan(policy, BOUNDARIES, frozenset(), (BEGIN, CLOSE))
    targets = [story(seed, paragraphs=14, length=(18, 24)) for seed in range(rows)]
    batch = Batch(model, plan, Forcing(targets), rows)
    batch.admit([Request(i, 0, i, prompt_of(i, 7), len(targets[i]), True) for i in range(rows)])
    peak = 0
    while len(batch.rows) == rows:
        batch.step()
        peak = max([peak, *(row.held for row in batch.rows)])
    return batch, peak


@pytest.mark.parametrize("name", ["zoomr", "sumr", "streaming_llm", "h2o", "snapkv"])
def test_k11_storage_is_kv_heads_and_close_to_the_active_set(name):
    """K11; and no views: what tensors hold is what the stores report, found by walking live tensors."""
    batch, peak = run_batch(name)
    held = batch.store.tensors()
    [kv] = held["device"]
    size = batch.store.size
    assert kv.shape[3] == size.shape.kv_heads == 2
    block = size.batch * size.block * size.token_bytes
    assert kv.untyped_storage().nbytes() <= 1.25 * size.batch * peak * size.token_bytes + block
    reported = {tensor.untyped_storage().data_ptr() for tier in held.values() for tensor in tier}
    for tensor in [item for item in gc.get_objects() if isinstance(item, torch.Tensor)]:
        wide = tensor.ndim >= 4 and tensor.shape[-1] == size.shape.head_dim and tensor.numel() > block // 16
        of_bank = hasattr(batch.control, "bank") and tensor.data_ptr() == batch.control.bank.means.data_ptr()
        of_history = batch.observer.history is not None and tensor is batch.observer.history.ring
        if wide and not of_bank and not of_history:
            assert tensor.untyped_storage().data_ptr() in reported, tuple(tensor.shape)


def test_the_host_holds_every_kv_once_and_is_dropped_with_its_row():
    batch, _ = run_batch("zoomr")
    store = batch.store
    for index, row in enumerate(batch.rows):
        held = store.hosts[index].length + store.used[index] - store.saved[index]
        assert held == row.position
    free = [index for index in range(store.size.batch) if index >= len(batch.rows)]
    assert all(not store.hosts[index].blocks for index in free)


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
