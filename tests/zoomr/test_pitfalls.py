"""Public bug reports of people who do this job, as tests (the ids are those of the list they come from)."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import DynamicCache

from tests.zoomr.tiny import BEGIN, BOUNDARIES, CLOSE, make_model, policies, prompt_of, story
from zoomr import H2O, Full, SnapKV, StreamingLLM, ZoomR, compat, decode, generate, teacher_forced
from zoomr.attention import attend_one, attend_weighed
from zoomr.batch import Batch
from zoomr.forcing import Forcing
from zoomr.meter import resolve_budget
from zoomr.observers import received_attention
from zoomr.plan import Plan
from zoomr.rotary import rotate
from zoomr.rows import Request
from zoomr.runs import UserError
from zoomr.stores import SlotEvictStore

PROMPT, STORY = prompt_of(0, 9), story(2, paragraphs=4)
EVICTING = [name for name, policy in policies().items() if not policy.recalls and not name.startswith("full")]


def decoding(model, policy, prompts, targets, mode="gather"):
    """A batch in the middle of teacher forcing, and its forcing."""
    forcing = Forcing(targets, keep_logits=True)
    plan = Plan(policy, BOUNDARIES, frozenset(), (BEGIN, CLOSE), mode)
    batch = Batch(model, plan, forcing, len(prompts))
    batch.admit([Request(i, 0, i, prompt, len(targets[i]), True) for i, prompt in enumerate(prompts)])
    return batch, forcing


@pytest.mark.parametrize("name", policies())
def test_k01_positions_count_tokens_seen_not_rows_kept(model, tokenizer, name):
    positions = []

    def note(module, args, kwargs):
        positions.append(kwargs["position_ids"].flatten().tolist())

    handle = model.register_forward_pre_hook(note, with_kwargs=True)
    teacher_forced(model, tokenizer, [PROMPT], [STORY], policy=policies()[name])
    handle.remove()
    assert [one for call in positions for one in call] == list(range(len(PROMPT) + len(STORY) - 1))


@pytest.mark.parametrize("positions", ["absolute", "reassigned"])
def test_k02_k03_effective_positions_of_kept_keys(positions):
    """Sinks 2, budget 6; the logits equal a forward whose keys are all rotated for the declared positions."""
    model = make_model(layers=1)
    targets = [prompt_of(8, 14)]
    policy = StreamingLLM(budget=6, start=2, positions=positions)
    _, forcing = batch = decoding(model, policy, [PROMPT[:3]], targets)
    while batch[0].rows:
        batch[0].step()
    tokens = PROMPT[:3] + targets[0]
    for index in range(4, 14):
        newest = 3 + index - 1
        kept = [0, 1, *range(max(2, newest - 4), newest + 1)]
        place = kept if positions == "absolute" else list(range(len(kept)))
        model.set_attn_implementation("eager")
        # one layer: a key depends on its own token alone, so that kept tokens at given positions are the cache
        with torch.inference_mode():
            logits = model(torch.tensor([[tokens[k] for k in kept]]), position_ids=torch.tensor([place])).logits
        torch.testing.assert_close(forcing.logits[0][index], logits[0, -1], atol=1e-5, rtol=0)


@pytest.mark.parametrize("last", [7, 16, 33])
def test_k04_one_token_writes_past_the_limit(last):
    """Keeping the last S tokens of one layer equals a dense run on the suffix: distances are all that counts."""
    model = make_model(layers=1)
    targets = [prompt_of(1, 2 * last + 5)]
    batch, forcing = decoding(model, StreamingLLM(budget=last, start=0), [PROMPT], targets)
    while batch.rows:
        batch.step()
    tokens = PROMPT + targets[0]
    model.set_attn_implementation("sdpa")
    for index in range(last + 1, 2 * last + 5, 3):
        stop = len(PROMPT) + index
        with torch.inference_mode():
            logits = model(torch.tensor([tokens[max(0, stop - last - 1) : stop]])).logits[0, -1]
        torch.testing.assert_close(forcing.logits[0][index], logits, atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", policies())
def test_k05_prefill_logits_are_those_of_the_full_cache(model, tokenizer, name):
    """With a prompt longer than the budget: eviction comes after attention."""
    long = prompt_of(3, 40)
    [full] = teacher_forced(model, tokenizer, [long], [[20]], policy=Full(), keep_logits=True)
    [found] = teacher_forced(model, tokenizer, [long], [[20]], policy=policies()[name], keep_logits=True)
    assert torch.equal(found.logits, full.logits)


@pytest.mark.parametrize("name", EVICTING)
def test_k06_the_budget_holds_after_every_call(model, name):
    policy = policies()[name]
    for length in (3, 40):
        prompt = prompt_of(3, length)
        batch, _ = decoding(model, policy, [prompt], [STORY])
        limit = max(policy.budget, policy.first(length) + policy.protected)
        while batch.rows:
            row = batch.rows[0]
            assert row.held <= limit + policy.interval - 1
            _, present, _ = batch.store.slots([0])
            assert (present.sum(-1) - int(batch.store.hole[0]) == row.held).all()
            batch.step()


@pytest.mark.parametrize("name", ["streaming_llm", "streaming_llm_prompt", "h2o_prompt", "random_attention_prompt"])
def test_k06_sinks_and_prompt_survive_and_positions_are_sound(model, name):
    """Sinks are the row's first real tokens (K20); kept positions are unique and in range, the newest among them."""
    policy = policies()[name]
    batch, _ = decoding(model, policy, [PROMPT, PROMPT[:4]], [STORY, STORY])
    while len(batch.rows) == 2:
        batch.step()
        if any(batch.store.hole):
            continue
        for index, row in enumerate(batch.rows):
            positions, present, _ = batch.store.slots([index])
            for group in positions.expand(present.shape).masked_fill(~present, -1).flatten(0, 2):
                held = [one for one in group.tolist() if one >= 0]
                assert len(set(held)) == len(held) and max(held) == row.position - 1
                assert set(range(policy.first(row.prompt))) <= set(held)


def test_k07_k08_a_cache_that_is_not_empty_is_refused(model):
    cache = DynamicCache()
    with torch.inference_mode():
        model(torch.tensor([PROMPT]), **{compat.CACHE_KWARG: cache}, use_cache=True)
    bound = {"custom_generate": decode, "policy": ZoomR(), "boundaries": [], "delimiters": (BEGIN, CLOSE)}
    ids = torch.tensor([[*PROMPT, 20]])
    with pytest.raises(UserError, match="past_key_values"):
        model.generate(ids, **{compat.CACHE_KWARG: cache}, max_new_tokens=3, **bound)


def test_k09_an_unsupported_transformers_gives_a_readable_message():
    code = "import transformers; transformers.__version__ = '4.57.0'; import zoomr.compat"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "zoomr needs transformers >=5.20,<5.25; installed is 4.57.0" in done.stderr


def test_k10_per_head_sets_need_no_mask_of_the_model(model):
    """Every layer and head of h2o holds its own positions, and no 2-D mask could say so."""
    batch, _ = decoding(model, H2O(budget=12), [PROMPT], [STORY])
    for _ in range(40):
        batch.step()
    positions, present, _ = batch.store.slots([0])
    held = [tuple(sorted(group.tolist())) for group in positions[:, 0].flatten(0, 1)]
    assert present.all() and len(set(held)) > 1


@pytest.mark.parametrize(
    "path", sorted((Path(__file__).parents[2] / "configs/method").glob("*.yaml")), ids=lambda path: path.stem
)
def test_k14_every_number_of_a_method_has_its_source(path):
    for line in path.read_text().splitlines():
        if re.search(r"^  \w+: [-\d]", line):
            assert re.search(r"# (paper|assumption|source): ", line), line


@pytest.mark.parametrize("heads", [(8, 8), (8, 2), (8, 1)], ids=str)
def test_k12_k13_attention_and_its_weights_by_hand(heads):
    """K13: policies that need weights compute them; nothing is asked of the model's attention output."""
    torch.manual_seed(0)
    query = torch.randn(2, heads[0], 1, 8)
    key, value = torch.randn(2, heads[1], 11, 8), torch.randn(2, heads[1], 11, 8)
    mask = torch.rand(2, 1, 1, 11) < 0.6
    expected, weights = torch.zeros(2, 1, heads[0], 8), torch.zeros(2, heads[1], 11)
    for row in range(2):
        for head in range(heads[0]):
            group = head * heads[1] // heads[0]
            scores = (key[row, group] @ query[row, head, 0]) * 0.3
            share = scores.masked_fill(~mask[row, 0, 0], float("-inf")).softmax(-1)
            expected[row, 0, head] = share @ value[row, group]
            weights[row, group] += share
    torch.testing.assert_close(attend_one(query, key, value, mask, 0.3), expected)
    output, given = attend_weighed(query, key, value, mask, 0.3)
    torch.testing.assert_close(output, expected)
    torch.testing.assert_close(given, weights)


def test_k13_h2o_counts_every_prompt_query_in_blocks_without_a_square_matrix(monkeypatch):
    monkeypatch.setattr("zoomr.observers.QUERY_BLOCK", 5)
    torch.manual_seed(0)
    query, key = torch.randn(2, 4, 13, 8), torch.randn(2, 2, 13, 8)
    padding = torch.arange(13) >= torch.tensor([[0], [4]])
    expected = torch.zeros(2, 2, 13)
    for row, pad in enumerate((0, 4)):
        for head in range(4):
            for at in range(pad, 13):
                scores = key[row, head // 2, pad : at + 1] @ query[row, head, at] * 0.4
                expected[row, head // 2, pad : at + 1] += scores.softmax(-1)
    torch.testing.assert_close(received_attention(query, key, padding, 0.4), expected)


def test_k16_kinds_of_active_tokens_add_up(model, tokenizer):
    for name, policy in policies().items():
        [result] = teacher_forced(model, tokenizer, [PROMPT], [STORY], policy=policy)
        stats = result.stats
        assert sum(stats.active_by_kind.values()) == pytest.approx(stats.active_tokens_mean)
        assert stats.seen_tokens == len(PROMPT) + len(STORY)
        if policy.recalls or name.endswith("prompt"):
            assert stats.active_by_kind["prompt"] == len(PROMPT)


def test_k16_the_meter_counts_what_attention_sees(model):
    """Active tokens by the meter, against the slots that the steps really attended to."""
    batch, _ = decoding(model, ZoomR(window=8), [PROMPT], [STORY])
    row, seen = batch.rows[0], []
    while batch.rows:
        batch.step()
        seen.append(batch.store._filled)
    usage = row.usage()
    assert usage.active_tokens_mean == pytest.approx(sum(seen) / len(seen))
    assert usage.active_tokens_peak == max(seen)
    assert usage.kv_saving == pytest.approx(usage.seen_tokens / max(seen))


def test_k18_budgets_resolve_to_tokens():
    assert resolve_budget(100) == 100
    assert resolve_budget(0.25, seen_tokens=1000) == 250
    assert resolve_budget("1MiB", bytes_per_token=1024) == 1024
    assert resolve_budget("0.5MB", bytes_per_token=1000) == 500
    assert resolve_budget("match", matched=321.7) == 321
    for wrong in (0, -3, 1.5, "5 furlongs", True, 0.2, "match", "1MB"):
        with pytest.raises(UserError, match="policy.budget"):
            resolve_budget(wrong)


def test_k20_padding_never_enters_keys_means_or_sinks(model, tokenizer):
    """The mean keys of a row in a left-padded batch equal those of the row alone."""
    batch, _ = decoding(model, ZoomR(window=8), [prompt_of(1, 30), PROMPT], [STORY, STORY])
    alone, _ = decoding(model, ZoomR(window=8), [PROMPT], [STORY])
    for _ in range(60):
        batch.step()
        alone.step()
    number = alone.rows[0].tracker.finished
    assert number > 1
    found, expected = batch.control.bank.means[:, 1, :, :number], alone.control.bank.means[:, 0, :, :number]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_k21_offloading_runs_without_a_gpu(model, tokenizer):
    """Two layers' buffers are on the device, whatever the number of layers; the rest is on the host."""
    deep = make_model(layers=5)
    plan = Plan(ZoomR(window=8), BOUNDARIES, frozenset(), (BEGIN, CLOSE), residency="layerwise")
    batch = Batch(deep, plan, Forcing([STORY]), 1)
    batch.admit([Request(0, 0, 0, PROMPT, len(STORY), True)])
    while len(batch.rows[0].tokens) < 40:
        batch.step()
    held = batch.store.tensors()
    layer_bytes = batch.store.kv[0].numel() * 4
    assert sum(tensor.untyped_storage().nbytes() for tensor in held["device"]) == 2 * layer_bytes
    assert batch.store.kv.numel() * 4 == 5 * layer_bytes and batch.rows[0].moved_bytes > 0


def test_k23_h2o_always_keeps_its_recent_share(model):
    policy = H2O(budget=20)
    batch, _ = decoding(model, policy, [PROMPT], [story(5, paragraphs=9)])
    evicted_ages = []
    while len(batch.rows[0].tokens) < 150 and batch.rows:
        before = {position for group in batch.store.positions[:, 0].flatten(0, 1).tolist() for position in group}
        batch.step()
        row = batch.rows[0]
        if batch.store.hole[0]:
            free = batch.store.positions[:, 0].gather(-1, batch.store.free[:, 0, :, None])
            evicted_ages += (row.position - 1 - free).flatten().tolist()
        assert before
    assert min(evicted_ages) >= policy.protected
    assert max(evicted_ages) > 3 * policy.protected


def test_k17_k22_a_full_cache_of_ours_does_no_bookkeeping_per_token(model):
    """No eviction, no mask and no capture where nothing is dropped."""
    batch, _ = decoding(model, Full(), [PROMPT], [STORY])
    for _ in range(5):
        batch.step()
    assert isinstance(batch.store, SlotEvictStore)
    assert batch.store.mask(0) is None and not batch.observer.capture and batch.rows[0].refreshes == 0


def test_k25_without_cuda_the_gpu_script_says_so():
    done = subprocess.run([sys.executable, "-m", "zoomr.bench_gpu"], capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "needs a CUDA device" in done.stderr


@pytest.mark.parametrize("name", ["zoomr", "h2o"])
def test_bf16_stays_within_its_band(tokenizer, name):
    """Half precision: the same choices, logits apart by rounding alone; equality is for fp32."""
    model = make_model(dtype=torch.bfloat16)
    settings = {"policy": policies()[name], "keep_logits": True}
    [mask] = teacher_forced(model, tokenizer, [PROMPT], [STORY], mode="mask", **settings)
    [gather] = teacher_forced(model, tokenizer, [PROMPT], [STORY], mode="gather", **settings)
    assert (mask.logits - gather.logits).abs().mean() < 0.05 * mask.logits.std()
    assert (mask.top == gather.top).float().mean() > 0.9


def test_rotation_moves_a_key_to_another_position(model):
    rotary = model.get_decoder().rotary_emb
    keys = torch.randn(3, 5, 8)
    there = rotate(keys, torch.tensor([0, 3, 9, 40, 7]), rotary)
    torch.testing.assert_close(rotate(there, -torch.tensor([0, 3, 9, 40, 7]), rotary), keys, atol=1e-5, rtol=1e-5)
    assert torch.equal(there[:, 0], keys[:, 0])
    assert replace(ZoomR(), pre_rope=True).pre_rope


def test_trace_streams_to_disk(model, tokenizer, tmp_path):
    from zoomr.trace import TraceWriter

    with TraceWriter(tmp_path / "trace.jsonl") as trace:
        generate(model, tokenizer, [PROMPT], policy=ZoomR(window=8), max_new_tokens=40, temperature=1.0, trace=trace)
    rows = [json.loads(line) for line in (tmp_path / "trace.jsonl").read_text().splitlines()]
    assert rows and all(row["finished"] * 2 + 1 <= len(row["edges"]) for row in rows)


def test_snapkv_of_both_sources_can_be_said():
    assert SnapKV(budget=64, interval=128, history=8, group="max", pool="max", kernel=7).protected == 8
