"""The loop: what a user gets from `generate`, `stream` and `model.generate(custom_generate=decode)`."""

import subprocess
import sys

import pytest
import torch
from transformers.generation import BaseStreamer

from tests.zoomr.tiny import BEGIN, BOUNDARIES, CLOSE, END, EOS, PAD, STOP, make_model, policies, prompt_of
from zoomr import Full, Quest, StreamingLLM, ZoomR, decode, generate, stream
from zoomr.errors import UserError

PROMPTS = [prompt_of(seed, length) for seed, length in enumerate((31, 32, 33, 65))]
OWN_SIZES = {"rpc_growing", "quest", "quest_second_layer"}  # which neither a window nor a budget sets
LONG = {name: policy for name, policy in policies(window=400, budget=400).items() if name not in OWN_SIZES}
LONG["quest"] = Quest(attended=400, page=4, full_layers=0)


def greedy(model, prompts, tokens=40, **settings):
    """What transformers generates, prompt by prompt."""
    model.set_attn_implementation("sdpa")
    settings = {"do_sample": False, "max_new_tokens": tokens, "eos_token_id": None, "pad_token_id": PAD} | settings
    return [model.generate(torch.tensor([prompt]), **settings)[0, len(prompt) :].tolist() for prompt in prompts]


@pytest.fixture(scope="module")
def expected(model):
    return greedy(model, PROMPTS)


@pytest.mark.parametrize("mode", ["mask", "gather"])
@pytest.mark.parametrize("name", LONG)
def test_k15_k19_nothing_dropped_is_identical_to_transformers(model, tokenizer, expected, name, mode):
    """Lengths around 32 and 64 in one left-padded batch; every policy's budget or window covers all."""
    policy = LONG[name]
    found = generate(model, tokenizer, PROMPTS, policy=policy, max_new_tokens=40, mode=mode, stop_ids=[], batch_size=3)
    assert [result.token_ids for result in found] == expected
    assert all(result.stats.active_tokens_peak == result.stats.seen_tokens - 1 for result in found)


def test_a_sample_depends_on_its_seed_alone(model, tokenizer):
    """Not on the batch, its neighbours, or the order of service."""
    settings = {"policy": ZoomR(window=8), "max_new_tokens": 30, "temperature": 0.9, "top_p": 0.9, "stop_ids": [STOP]}
    together = generate(model, tokenizer, PROMPTS, samples=3, seeds=range(12), batch_size=5, **settings)
    assert [(one.prompt, one.sample, one.seed) for one in together] == [(i // 3, i % 3, i) for i in range(12)]
    for one in together[2:10:3]:
        [alone] = generate(model, tokenizer, [PROMPTS[one.prompt]], seeds=[one.seed], **settings)
        assert alone.token_ids == one.token_ids
    assert len({tuple(one.token_ids) for one in together}) > 6


@pytest.mark.parametrize("name", ["random_zoom", "random_attention"])
def test_large_seeds_are_seeds(model, tokenizer, name):
    settings = {"policy": policies()[name], "max_new_tokens": 40, "temperature": 1.0, "stop_ids": []}
    one, other = generate(model, tokenizer, PROMPTS[:1], samples=2, seeds=[2**62, 2**63 - 1], **settings)
    assert one.token_ids != other.token_ids


def test_waiting_requests_take_the_places_of_finished_rows(model, tokenizer):
    settings = {"policy": ZoomR(window=8), "max_new_tokens": 60, "temperature": 1.0, "stop_ids": [STOP, EOS, 20, 21]}
    calls = []

    def note(module, args, kwargs):
        calls.append(kwargs["input_ids"].shape)

    handle = model.register_forward_pre_hook(note, with_kwargs=True)
    found = list(stream(model, tokenizer, PROMPTS, samples=6, batch_size=4, **settings))
    handle.remove()
    steps = [shape for shape in calls if shape[1] == 1]
    assert sum(shape[0] for shape in steps) == sum(len(one.token_ids) - 1 for one in found)
    prefills = [shape for shape in calls if shape[1] > 1]
    assert sum(shape[0] for shape in prefills) == len(PROMPTS)  # one prefill a prompt, however many samples
    assert {(one.prompt, one.sample) for one in found} == {(i, j) for i in range(4) for j in range(6)}
    assert [one.prompt for one in found] != sorted(one.prompt for one in found)


def test_every_end_id_stops_a_row(tokenizer):
    model = make_model()
    model.generation_config.eos_token_id = [STOP, END]
    found = generate(model, tokenizer, PROMPTS, policy=Full(), max_new_tokens=80, temperature=1.0, samples=6)
    ends = {one.token_ids[-1] for one in found if one.status == "stop"}
    assert ends == {STOP, END, EOS}
    for one in found:
        assert not {STOP, END, EOS} & set(one.token_ids[:-1])
        assert (one.status == "stop") == (one.token_ids[-1] in {STOP, END, EOS})
        assert one.text == tokenizer.decode(one.token_ids[: len(one.token_ids) - (one.status == "stop")])


def test_text_keeps_the_delimiters(model, tokenizer):
    """D17."""
    settings = {"max_new_tokens": 80, "temperature": 1.0, "samples": 2, "stop_ids": []}
    found = generate(model, tokenizer, PROMPTS, policy=Full(), **settings)
    for one in found:
        assert one.text.count("<|begin_of_summary|>") == one.token_ids.count(BEGIN)
        assert one.text.count("<|end_of_summary|>") == one.token_ids.count(CLOSE)
        assert one.stats.balanced == (one.stats.unbalanced == 0 and one.stats.summaries > 0)


def test_a_tail_that_repeats_is_reported(tokenizer):
    model = make_model()
    model.lm_head.weight.data.zero_()  # greedy gives token 0 for ever
    [found] = generate(model, tokenizer, PROMPTS[:1], policy=ZoomR(window=8), max_new_tokens=300, stop_ids=[])
    assert found.status == "repetition"
    [short] = generate(model, tokenizer, PROMPTS[:1], policy=ZoomR(window=8), max_new_tokens=40, stop_ids=[])
    assert short.status == "length"


def test_callbacks_stream_every_token(model, tokenizer):
    seen = {}
    found = generate(
        model,
        tokenizer,
        PROMPTS,
        policy=ZoomR(window=8),
        max_new_tokens=9,
        samples=2,
        temperature=1.0,
        token_callback=lambda prompt, sample, token: seen.setdefault((prompt, sample), []).append(token),
    )
    assert seen == {(one.prompt, one.sample): one.token_ids for one in found}


@pytest.mark.parametrize("length", [1, 2])
@pytest.mark.parametrize("name", policies())
def test_short_inputs(model, tokenizer, name, length):
    """No summary, one token, one step."""
    found = generate(model, tokenizer, [[20] * length], policy=policies()[name], max_new_tokens=length, stop_ids=[])
    assert found[0].token_ids == greedy(model, [[20] * length], tokens=length)[0]
    assert found[0].stats.seen_tokens == 2 * length


def test_prompts_may_be_text_or_ids(model, tokenizer):
    text = "w1 w2 w3"
    settings = {"policy": Full(), "max_new_tokens": 5}
    [one] = generate(model, tokenizer, [text], **settings)
    [other] = generate(model, tokenizer, [tokenizer(text)["input_ids"]], **settings)
    assert one.token_ids == other.token_ids


@pytest.mark.parametrize("name", ["full", "zoomr", "h2o"])
def test_decode_serves_transformers_generate(model, tokenizer, name):
    """Left-padded input, one mask for all; end ids and processors of the generation configuration hold."""
    width = max(map(len, PROMPTS))
    ids = torch.tensor([[PAD] * (width - len(prompt)) + prompt for prompt in PROMPTS])
    mask = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in PROMPTS])
    settings = {"do_sample": False, "max_new_tokens": 30, "eos_token_id": [22, 23], "repetition_penalty": 1.3}
    model.set_attn_implementation("sdpa")
    expected = model.generate(ids, attention_mask=mask, pad_token_id=PAD, **settings)
    found = model.generate(
        ids,
        attention_mask=mask,
        pad_token_id=PAD,
        custom_generate=decode,
        policy=LONG[name],
        text_tokenizer=tokenizer,
        **settings,
    )
    assert found.tolist() == expected.tolist()


def test_decode_samples_and_returns_sequences(model):
    ids = torch.tensor(PROMPTS[:1])
    settings = {"do_sample": True, "max_new_tokens": 12, "num_return_sequences": 3, "return_dict_in_generate": True}
    bound = {"policy": ZoomR(window=8), "boundaries": BOUNDARIES, "delimiters": (BEGIN, CLOSE)}
    bound["custom_generate"] = decode
    torch.manual_seed(5)
    one = model.generate(ids, **settings, **bound).sequences
    torch.manual_seed(5)
    other = model.generate(ids, **settings, **bound).sequences
    assert one.tolist() == other.tolist()
    assert len({tuple(row) for row in one.tolist()}) == 3


def test_what_cannot_be_served_is_refused_in_one_sentence(model, tokenizer):
    ids = torch.tensor(PROMPTS[:1])
    bound = {"custom_generate": decode, "policy": ZoomR(), "text_tokenizer": tokenizer, "max_new_tokens": 3}
    for settings, named in [({"num_beams": 2}, "num_beams"), ({"max_time": 1.0}, "stopping_criteria")]:
        with pytest.raises(UserError, match=named):
            model.generate(ids, **bound, **settings)
    with pytest.raises(UserError, match="text_tokenizer"):
        model.generate(ids, custom_generate=decode, policy=ZoomR(), max_new_tokens=3)
    sliding = make_model("mistral", sliding_window=8)
    with pytest.raises(UserError, match="sliding_window=8"):
        generate(sliding, tokenizer, PROMPTS, policy=Full(), max_new_tokens=3)
    with pytest.raises(UserError, match="mode=real: one of gather, mask"):
        generate(model, tokenizer, PROMPTS, policy=Full(), max_new_tokens=3, mode="real")
    with pytest.raises(UserError, match="budget=match"):
        generate(model, tokenizer, PROMPTS, policy=StreamingLLM(budget="match"), max_new_tokens=3)
    with pytest.raises(UserError, match="prompts"):
        generate(model, tokenizer, [[]], policy=Full(), max_new_tokens=3)
    with pytest.raises(UserError, match="seeds"):
        generate(model, tokenizer, PROMPTS, policy=Full(), max_new_tokens=3, seeds=[1])


def test_importing_zoomr_does_not_load_torch():
    code = "import sys, zoomr; sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_model_is_left_as_it_was_found(tokenizer):
    """Its attention is switched for a call alone, also where the call fails or is left in its middle."""
    model = make_model()
    model.set_attn_implementation("eager")
    settings = {"policy": ZoomR(window=8), "max_new_tokens": 9}

    def attends():
        return model(torch.tensor(PROMPTS[:1]), output_attentions=True).attentions[0] is not None

    generate(model, tokenizer, PROMPTS, **settings)
    assert attends()
    running = stream(model, tokenizer, PROMPTS, batch_size=1, **settings)
    next(running)
    running.close()
    assert attends()
    with pytest.raises(UserError):
        generate(model, tokenizer, PROMPTS, policy=ZoomR(voters=((9, 9),)), max_new_tokens=3)
    assert attends() and model.config._attn_implementation == "eager"


@pytest.mark.parametrize("wrong", [float("nan"), 1e-45, -1, float("inf")])
def test_temperatures_that_mean_nothing_are_refused(model, tokenizer, wrong):
    with pytest.raises(UserError, match="temperature="):
        generate(model, tokenizer, PROMPTS, policy=Full(), max_new_tokens=3, temperature=wrong)


def test_whole_temperatures_are_numbers_too(model, tokenizer):
    settings = {"policy": Full(), "max_new_tokens": 9, "stop_ids": []}
    one, other = (generate(model, tokenizer, PROMPTS, temperature=t, **settings) for t in (2, 2.0))
    assert [found.token_ids for found in one] == [found.token_ids for found in other]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_logits_that_are_no_numbers_never_become_tokens(tokenizer, temperature):
    model = make_model()
    model.lm_head.weight.data[3] = float("nan")
    with pytest.raises(UserError, match="not numbers"):
        generate(model, tokenizer, PROMPTS, policy=Full(), max_new_tokens=3, temperature=temperature)


def test_decode_streams_a_row_and_refuses_what_would_have_no_effect(model, tokenizer):
    class Streamer(BaseStreamer):
        def __init__(self):
            self.tokens, self.ended = [], False

        def put(self, value):
            self.tokens += value.flatten().tolist()

        def end(self):
            self.ended = True

    ids, streamer = torch.tensor(PROMPTS[:1]), Streamer()
    bound = {"custom_generate": decode, "policy": ZoomR(), "text_tokenizer": tokenizer, "max_new_tokens": 6}
    found = model.generate(ids, do_sample=False, eos_token_id=None, token_streamer=streamer, **bound)
    assert streamer.tokens == found[0].tolist() and streamer.ended
    with pytest.raises(UserError, match="output_scores"):
        model.generate(ids, output_scores=True, return_dict_in_generate=True, **bound)
    with pytest.raises(UserError, match="position_ids"):
        model.generate(ids, position_ids=torch.arange(3, 34)[None], **bound)
