"""The learned index: what is recorded, what it is fitted to, and what is stored for one model alone."""

import json
import re
import shutil
import sys
from pathlib import Path

import pytest
import torch
from datasets import load_from_disk
from torch.nn.functional import cross_entropy

import train.index
from data_gen.ledger.tokens import ledger_tokenizer
from data_gen.solution import solution
from data_gen.worlds import world_of
from tests.train.conftest import Workshop
from train import targets
from train.bilinear import Example, fit, hits, scores
from train.recording import places, prepare, record
from zoomr.errors import UserError
from zoomr.loading import add_delimiters, load
from zoomr.summaries.index import LearnedIndex, decoder_layers, fingerprint, load_index
from zoomr.summaries.segments import boundary_table, delimiter_ids

ROOT = Path(__file__).parents[2]
SPAN = 8


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A base model that stands as its own export, and built rows."""
    shop = Workshop(tmp_path_factory.mktemp("index"))
    exported = shop.root / "export"
    exported.mkdir()
    model, tokenizer = load(shop.base)
    model.save_pretrained(exported / "merged")
    tokenizer.save_pretrained(exported / "merged")
    (exported / "manifest.json").write_text(json.dumps({"ended": "2026-01-01", "outputs": {"merged": "1"}}))
    return shop


@pytest.fixture
def call(monkeypatch, capfd, shop):
    """Run the stage's command in this process; return its exit status, output and errors."""

    def run(*overrides):
        paths = (f"index.checkpoint={shop.root / 'export'}", f"index.data={shop.data}", f"paths.root={shop.root}/runs")
        small = ("index.epochs=2", "index.ranks=[2,4]", "index.rows=6", "index.validation_rows=2")
        monkeypatch.setattr(sys, "argv", ["train/index.py", *paths, *small, *overrides])
        monkeypatch.chdir(ROOT)
        capfd.readouterr()
        try:
            train.index.main()
            status = 0
        except SystemExit as ended:
            status = ended.code
        return status, *capfd.readouterr()

    return run


def located(shop, number=0):
    row = load_from_disk(str(shop.data / "train"))[number]
    return row, places(row, boundary_table(shop.tokenizer), delimiter_ids(shop.tokenizer), SPAN)


def test_places_are_those_that_the_tokens_say(shop):
    row, where = located(shop)
    ids, tokens = row["input_ids"], shop.tokenizer.convert_ids_to_tokens(row["input_ids"])
    assert [tokens[end] for end in where.ends] == ["<|end_of_summary|>"] * tokens.count("<|end_of_summary|>")
    assert all(tokens[part.stop] == "<|begin_of_summary|>" for part in where.paragraphs)
    for boundary, finished, stop in zip(where.boundaries, where.finished, where.stops, strict=True):
        assert finished == tokens[: boundary + 1].count("<|end_of_summary|>") >= 2
        assert ids[boundary] in boundary_table(shop.tokenizer)
        assert boundary < stop - 1 <= boundary + SPAN
        assert not any(token in boundary_table(shop.tokenizer) for token in ids[boundary + 1 : stop - 1])


def test_attention_mass_and_hidden_states_are_the_models_own(shop):
    row, where = located(shop)
    model, _ = load(shop.base, attn_implementation="eager")
    ids = torch.tensor([row["input_ids"]])
    outputs = []
    for layer in decoder_layers(model):
        layer.register_forward_hook(lambda _, __, output: outputs.append(output[0]))
    with torch.no_grad():
        weights = torch.cat(model(ids, output_attentions=True).attentions)  # (L, H, T, T)
    expected = torch.zeros(len(where.boundaries), len(where.ends))
    for s, (boundary, stop) in enumerate(zip(where.boundaries, where.stops, strict=True)):
        for n, part in enumerate(where.paragraphs):
            given = weights[:, :, boundary + 1 : stop, part.start : part.stop].sum(-1)
            expected[s, n] = given.amax(-1).sum()
    watched, _ = load(shop.base)
    prepare(watched)
    found = record(watched, row, where, [0, 1])
    torch.testing.assert_close(found.evidence, expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(found.queries, torch.stack([out[where.boundaries] for out in outputs]))
    torch.testing.assert_close(found.keys, torch.stack([out[where.ends] for out in outputs]))


def test_the_gradient_is_the_change_of_the_loss(shop):
    """One pair's entry against a difference quotient of the loss, with the bias put into the attention by hand."""
    row, where = located(shop)
    model, _ = load(shop.base, dtype=torch.float64)
    prepare(model)
    found = record(model, row, where, [0], gradient=True).evidence
    s, n = len(where.boundaries) // 2, 1
    ids = torch.tensor([row["input_ids"]])

    class Pushed:
        def __init__(self, by):
            self.mask = torch.zeros(where.length, where.length, dtype=torch.float64)
            part = where.paragraphs[n]
            self.mask[where.boundaries[s] + 1 : where.stops[s], part.start : part.stop] = by
            self.mask += torch.full_like(self.mask, float("-inf")).triu(1)

        def attend(self, module, query, key, value, mask, scaling):
            keys, values = (x.repeat_interleave(query.shape[1] // x.shape[1], 1) for x in (key, value))
            weights = (query @ keys.transpose(-1, -2) * scaling + self.mask).softmax(-1)
            return (weights @ values).transpose(1, 2)

    def loss(by):
        with torch.no_grad():
            logits = model(ids, use_cache=False, watch=Pushed(by)).logits[0, where.prompt : -1]
        return cross_entropy(logits, ids[0, where.prompt + 1 :], reduction="sum").item()

    assert found[s, n].item() == pytest.approx((loss(-1e-3) - loss(1e-3)) / 2e-3, rel=1e-3, abs=1e-6)


def test_contrast_is_what_a_slow_loop_finds():
    torch.manual_seed(0)
    finished = [2, 2, 3, 3, 4]
    candidates = torch.arange(4) < torch.tensor(finished)[:, None]
    mass = torch.rand(5, 4)
    expected, weights = torch.zeros(5, 4), torch.zeros(5)
    shares = [[mass[s, n] / mass[s, :c].sum() for n in range(c)] for s, c in enumerate(finished)]
    for s, count in enumerate(finished):
        for n in range(count):
            own = [shares[b][n] for b in range(s) if n < finished[b]]
            ago = count - 1 - n
            alike = [shares[b][finished[b] - 1 - ago] for b in range(s) if ago < finished[b]]
            usual = sum(alike) / len(alike) if alike else 0
            habit = (sum(own) + targets.PRIOR * usual) / (len(own) + targets.PRIOR)
            expected[s, n] = max(0, shares[s][n] - habit)
        if expected[s].sum():
            expected[s] /= expected[s].sum()
            weights[s] = mass[s, :count].sum() ** 2
    found = targets.contrast(mass, candidates)
    torch.testing.assert_close(found[0], expected)
    torch.testing.assert_close(found[1], weights)


def test_habit_alone_is_no_target_and_what_is_new_is():
    """The same attention at every boundary leaves nothing; one that turns to a paragraph points at it."""
    mass = torch.tensor([5.0, 1, 2]).repeat(6, 1)
    mass[4] = torch.tensor([5.0, 3, 2])
    shares, _ = targets.contrast(mass, torch.ones(6, 3, dtype=torch.bool))
    assert shares[1:4].abs().max() < 1e-4
    assert shares[4].tolist() == pytest.approx([0, 1, 0], abs=1e-4)


def test_gradient_keeps_what_lowers_the_loss():
    shares, weights = targets.gradient(torch.tensor([[3.0, -1, 1], [-1, -2, 9]]), torch.tensor([[1, 1, 1], [1, 1, 0]]))
    assert shares.tolist() == [[0.75, 0, 0.25], [0, 0, 0]]
    assert weights.tolist() == [4, 0]


def test_the_oracle_says_what_a_ledger_needs(shop):
    tokenizer = ledger_tokenizer()
    add_delimiters(tokenizer)
    for _, problem in world_of("ledger", "world").problems("validation", 6, [4, 9, 16], 0, "last"):
        told = solution(world_of("ledger", "world"), problem, tokenizer)
        ids, prompt = told.prompt + told.continuation, len(told.prompt)
        row = {"input_ids": ids, "labels": [-100] * prompt + told.continuation}
        where = places(row, boundary_table(tokenizer), delimiter_ids(tokenizer), SPAN)
        needs = targets.needed(ids, tokenizer, where)
        assert needs == {prompt + look_up.position: look_up.needs for look_up in told.look_ups}
        shares, weights = targets.labels(needs, where)
        at = {where.boundaries[s]: int(shares[s].argmax()) for s in weights.nonzero()[:, 0].tolist()}
        assert at == {position: needs[position] for position in at}
        assert len(at) >= len(needs) - 2  # the first two look-ups come before two summaries are finished
    row, where = located(shop)
    assert targets.needed(row["input_ids"], shop.tokenizer, where) == {}


def examples(rows, seed=0, width=12):
    """Rows whose boundaries need the summary that a hidden bilinear form scores highest."""
    generator = torch.Generator().manual_seed(seed)
    form = torch.randn(3, width, generator=torch.Generator().manual_seed(9))
    made = []
    for _ in range(rows):
        queries, keys = torch.randn(9, width, generator=generator), torch.randn(5, width, generator=generator)
        candidates = torch.arange(5) < torch.arange(2, 11)[:, None].clamp(max=5)
        truth = LearnedIndex(0, form, form)
        best = scores(truth, Example(queries, keys, candidates, candidates, candidates)).argmax(1)
        shares = torch.nn.functional.one_hot(best, 5).float()
        made.append(Example(queries, keys, candidates, shares, torch.ones(9)))
    return made


def test_fitting_finds_a_bilinear_form_and_is_the_same_each_time():
    index = fit(examples(60), layer=0, rank=3, epochs=12, rate=3e-2, seed=0)
    assert hits(index, examples(20, seed=1))[0] > 0.75  # by chance: 0.25
    again = fit(examples(60), layer=0, rank=3, epochs=12, rate=3e-2, seed=0)
    assert torch.equal(index.query, again.query)


def test_a_score_is_the_slow_loops(shop):
    torch.manual_seed(0)
    index = LearnedIndex(1, torch.randn(3, 8), torch.randn(3, 8), eps=1e-3)
    hidden, ends = torch.randn(2, 8), torch.randn(2, 4, 8)

    def norm(x):
        return (x - x.mean()) / (x.var(unbiased=False) + 1e-3).sqrt()

    found = index.scores(hidden, index.keys(ends))
    for r in range(2):
        for n in range(4):
            expected = (index.query @ norm(hidden[r])) @ (index.key @ norm(ends[r, n]))
            torch.testing.assert_close(found[r, n], expected, atol=1e-5, rtol=1e-5)


def test_hits_weigh_boundaries():
    index = LearnedIndex(0, torch.eye(2), torch.eye(2))
    keys = torch.tensor([[1.0, -1], [-1, 1]])
    shares = torch.tensor([[1.0, 0], [1, 0]])  # found at the first boundary, second best at the other
    example = Example(keys, keys, torch.ones(2, 2, dtype=torch.bool), shares, torch.tensor([3.0, 1]))
    assert hits(index, [example], (1, 2, 3)) == [0.75, 1, 1]


def test_fit_then_again_then_read(shop, call):
    once = call()
    assert once[0] == 0, once[2]
    directory = Path(once[1].splitlines()[-1].split()[1])
    manifest = (directory / "manifest.json").read_bytes()
    counts = json.loads(manifest)["counts"]
    assert counts["rows"] == {"train": 6, "validation": 2}
    assert {(report["layer"], report["rank"]) for report in counts["tried"]} >= {(0, 4), (1, 4)}
    assert counts["chosen"] == max(counts["tried"], key=lambda report: sum(report["target"]))

    status, out, _ = call()
    assert (status, out) == (0, once[1].splitlines(keepends=True)[-1])
    assert (directory / "manifest.json").read_bytes() == manifest

    model, _ = load(shop.base)
    for path in (directory, directory.parent / "latest"):
        index = load_index(path, model)
        assert index.layer == counts["chosen"]["layer"]
        assert index.query.shape == index.key.shape == (counts["chosen"]["rank"], 32)

    first = (directory / "index.safetensors").read_bytes()
    shutil.rmtree(directory)
    assert call()[0] == 0
    assert (directory / "index.safetensors").read_bytes() == first


def test_the_index_of_another_model_is_refused(shop, call, tmp_path):
    directory = Path(call()[1].splitlines()[-1].split()[1])
    model, _ = load(shop.base)
    mark = fingerprint(model)
    assert fingerprint(load(shop.base, dtype=torch.bfloat16)[0]) == mark
    with torch.no_grad():
        model.get_output_embeddings().weight[0, 0] += 1
    with pytest.raises(UserError, match="was fitted to another model"):
        load_index(directory, model)
    with pytest.raises(UserError, match=r"there is no index.safetensors; fit one with `python -m train.index`"):
        load_index(tmp_path, model)


def test_the_gradient_is_fitted_to_as_well(call):
    status, out, err = call("index.target=gradient")
    assert status == 0, err
    assert "chosen: layer" in out
    assert "needed" not in out  # these rows are no ledgers


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("index.target=mass", "index.target=mass: one of contrast, gradient, labels is needed"),
        ("index.target=labels", "index.target=labels finds nothing in these rows"),
        ("index.ranks=[16,0]", "index.ranks=.*: a list of values, each a whole number of at least 1"),
        ("index.ranks=[]", "index.ranks=.*: a list of values, each a whole number of at least 1"),
        ("index.rows=-3", "index.rows=-3: a whole number of at least 1"),
        ("index.learning_rate=0", "index.learning_rate=0: a number above 0"),
        ("index.checkpoint=nowhere", "run `python -m train.export` first"),
        ("index.data=nowhere", "run `python -m data_gen.build` first"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(call, override, sentence):
    status, _, err = call(override)
    assert status == 2
    assert re.search(sentence, err), err
    assert "Traceback" not in err
