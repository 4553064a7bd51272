"""Fine-tuning tiny models: the loss is the plain one, what should be learnt is, and a killed run goes on as if not."""

import re
import shutil
from pathlib import Path

import pytest
import torch
from datasets import load_from_disk
from safetensors.torch import load_file

import train.sft
from tests.train.conftest import Workshop, make_rows
from tests.train.tiny import CHATML, make_tokenizer
from train.checkpoints import last_checkpoint, step_of
from train.collate import RightPadding
from train.fit import fit, learn_under, make_trainer
from train.lora import Lora, adapt
from train.tracking import read_figures
from zoomr.errors import UserError
from zoomr.loading import DELIMITERS, load, load_tokenizer

ROOT = Path(__file__).parents[2]


def trained(workshop, directory, *overrides):
    directory.mkdir(parents=True, exist_ok=True)
    counts = fit(workshop.config(*overrides), workshop.data, directory)
    return load_file(directory / "adapter" / "adapter_model.safetensors"), counts


def trainer_for(workshop, directory, *overrides):
    config = workshop.config(*overrides)
    model, tokenizer = load(workshop.base)
    torch.manual_seed(0)
    adapted = adapt(model, tokenizer, Lora(**config["lora"]))
    with torch.no_grad():
        for name, parameter in adapted.named_parameters():
            if "lora_B" in name:
                parameter.normal_(std=0.1)
    learn_under(adapted, tokenizer, config["sft"]["policy"], config["sft"]["policy_share"])
    train, validation = (load_from_disk(str(workshop.data / split)) for split in ("train", "validation"))
    return make_trainer(adapted, tokenizer, train, validation, RightPadding(), config, directory)


def gradients(model):
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def assert_same(one, other, tolerance):
    assert one.keys() == other.keys()
    for name in one:
        torch.testing.assert_close(one[name], other[name], atol=tolerance, rtol=0, msg=lambda m, n=name: f"{n}: {m}")


def test_training_takes_denormal_numbers_for_zero(workshop, tmp_path):
    torch.set_flush_denormal(False)
    trained(workshop, tmp_path, "sft.max_steps=1")
    assert torch.tensor(1e-30) * 1e-10 == 0


def test_the_trainers_loss_and_gradients_are_plain_cross_entropy(workshops, tmp_path):
    trainer = trainer_for(workshops, tmp_path, "lora.dropout=0")
    assert_plain_cross_entropy(trainer)
    rows = [name for name in gradients(trainer.model) if "trainable_tokens_delta" in name]
    assert len(rows) == (1 if trainer.model.config.tie_word_embeddings else 2)


def assert_plain_cross_entropy(trainer):
    batch = trainer.data_collator([trainer.train_dataset[i] for i in range(3)])
    trainer.model.train()
    loss = trainer.compute_loss(trainer.model, dict(batch))
    loss.backward()
    ours = gradients(trainer.model)
    trainer.model.zero_grad()
    logits = trainer.model(input_ids=batch["input_ids"]).logits[:, :-1]
    plain = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch["labels"][:, 1:].flatten())
    plain.backward()
    torch.testing.assert_close(loss, plain, atol=1e-5, rtol=0)
    assert_same(ours, gradients(trainer.model), 1e-5)


@pytest.mark.parametrize("family", ["gpt_neox", "gpt2", "qwen3_moe", "mixtral"])
@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
def test_n15_other_embeddings_and_experts_are_trained_as_the_rest(family, tied, tmp_path):
    workshop = Workshop(tmp_path, family=family, tied=tied)
    assert_plain_cross_entropy(trainer_for(workshop, tmp_path, "lora.dropout=0"))
    weights, counts = trained(workshop, tmp_path / "run", "lora.dropout=0", "sft.max_steps=1")
    assert counts["steps"] == 1
    assert sum("trainable_tokens_delta" in name for name in weights) == (1 if tied else 2)


@pytest.mark.parametrize(
    ("family", "override", "sentence"),
    [
        ("qwen3_moe", "lora.dropout=0.05", "does not fit qwen3_moe.*Set lora.dropout=0, or name linear layers in"),
        ("mixtral", "lora.dropout=0.05", "does not fit mixtral.*Set lora.dropout=0, or name linear layers in"),
        ("phi", "lora.r=4", "the head of phi has a bias, which PEFT would drop"),
        ("llama", "lora.targets=[q_proj,nothing]", "lora.targets: llama has no module nothing"),
        ("gpt_neox", "lora.targets=q_proj", "lora.targets=q_proj does not fit gpt_neox"),
        ("llama", "lora.targets=[q_proj,lm_head]", "does not fit llama"),
        ("llama", "lora.r=0", "lora.r=0: has to be a whole number from 1"),
        ("llama", "lora.dropout=1", "lora.dropout=1: has to be from 0 to below 1"),
        ("llama", "lora.alpha=-2", "lora.alpha=-2: has to be above 0"),
        ("llama", "lora.targets=[]", r"lora.targets=\[\]: has to be names of modules"),
    ],
)
def test_n15_an_adapter_that_does_not_fit_is_refused_before_weights_are_read(family, override, sentence, tmp_path):
    workshop = Workshop(tmp_path, family=family)
    (workshop.base / "model.safetensors").unlink()
    with pytest.raises(UserError, match=sentence):
        trained(workshop, tmp_path / "run", override)


def test_right_padding_without_a_mask_changes_neither_loss_nor_gradients(workshop):
    model, tokenizer = load(workshop.base)
    rows = make_rows(tokenizer, range(4))
    batch = RightPadding()(rows)
    assert len({len(row["input_ids"]) for row in rows}) > 1
    together = model(**batch).loss
    together.backward()
    ours = gradients(model)
    model.zero_grad()
    supervised = [sum(label != -100 for label in row["labels"]) for row in rows]
    for row, count in zip(rows, supervised, strict=True):
        alone = model(input_ids=torch.tensor([row["input_ids"]]), labels=torch.tensor([row["labels"]])).loss
        (alone * count / sum(supervised)).backward()
    assert_same(ours, gradients(model), 1e-6)


def test_t15_rows_of_a_batch_do_not_see_each_other(workshop, tmp_path):
    """Neither packed nor padded: the first row's tokens may change without a trace in the second's logits."""
    trainer = trainer_for(workshop, tmp_path, "sft.batch_size=2")
    assert not trainer.args.packing
    batch = trainer.data_collator([trainer.train_dataset[i] for i in range(2)])
    assert batch["input_ids"].shape[0] == 2
    model, other = trainer.model.eval(), batch["input_ids"].clone()
    other[0] = other[0].roll(1)
    with torch.inference_mode():
        before, after = (model(input_ids=ids).logits for ids in (batch["input_ids"], other))
    assert not torch.equal(before[0], after[0])
    torch.testing.assert_close(before[1], after[1], atol=1e-6, rtol=0)


def test_t25_training_is_plain_full_attention(workshop, tmp_path):
    """The last supervised token still sees the first thought, whatever a policy would have left out; and it is said."""
    trainer = trainer_for(workshop, tmp_path)
    row = trainer.train_dataset[0]
    first = row["labels"].count(-100) + 5  # in the first paragraph, before the first summary
    embedded = trainer.model.get_input_embeddings()(torch.tensor([row["input_ids"]])).detach().requires_grad_()
    trainer.model.eval()(inputs_embeds=embedded).logits[0, -2, row["input_ids"][-1]].backward()
    assert (embedded.grad[0, first:-1].norm(dim=-1) > 0).all()
    for text in (train.sft.__doc__ or "", (ROOT / "README.md").read_text()):
        assert re.search(r"plain\s+full-attention", text, re.IGNORECASE)


def test_t16_accumulation_does_not_change_the_step(workshop, tmp_path):
    options = ("sft.max_steps=1", "lora.dropout=0", "sft.warmup=0", "sft.evaluate_every=10")
    once, counts = trained(workshop, tmp_path / "a", "sft.batch_size=4", "sft.accumulation=1", *options)
    often, again = trained(workshop, tmp_path / "b", "sft.batch_size=1", "sft.accumulation=4", *options)
    assert_same(once, often, 1e-6)
    assert counts["loss"] == pytest.approx(again["loss"], abs=1e-5)


@pytest.mark.parametrize("stop", [1, 4])
def test_t17_t18_a_killed_run_goes_on_to_the_same_adapter(workshops, tmp_path, stop, monkeypatch):
    often = ("sft.save_every=1", "sft.evaluate_every=3")
    options = (*often, "sft.learning_rate=1e-2", "lora.dropout=0.2", "sft.max_steps=6")
    whole, counts = trained(workshops, tmp_path / "whole", *options)

    killed = tmp_path / "killed"
    from train.watch import Watch

    def kill(self, args, state, control, **_):
        if state.global_step == stop + 1:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Watch, "on_step_end", kill)
        with pytest.raises(KeyboardInterrupt):
            trained(workshops, killed, *options)
    assert step_of(last_checkpoint(killed / "checkpoints")) == stop
    resumed, again = trained(workshops, killed, *options)
    assert_same(whole, resumed, 1e-6)
    assert again["steps"] == counts["steps"] == 6
    assert again["loss"] == pytest.approx(counts["loss"], abs=1e-5)
    lines = [(d / "metrics.jsonl").read_text().splitlines() for d in (tmp_path / "whole", killed)]
    assert len(lines[0]) == len(lines[1])


def test_a_half_written_checkpoint_is_passed_over(workshop, tmp_path):
    trained(workshop, tmp_path, "sft.save_every=1", "sft.max_steps=2")
    directory = tmp_path / "checkpoints"
    (complete,) = directory.glob("checkpoint-*")
    for name, state in (("checkpoint-10", None), ("checkpoint-11", '{"global_st')):
        shutil.copytree(complete, directory / name)
        (directory / name / "trainer_state.json").unlink()
        if state:
            (directory / name / "trainer_state.json").write_text(state)
    assert last_checkpoint(directory) == complete
    assert list(directory.glob("checkpoint-*")) == [complete]


def know_by_heart(base, row):
    """Train the whole base model on a row without its delimiters, as a base has learnt to reason without summaries."""
    model, tokenizer = load(base)
    marks = tokenizer.convert_tokens_to_ids(list(DELIMITERS))
    ids = torch.tensor([[token for token in row["input_ids"] if token not in marks]])
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for _ in range(100):
        model(ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.save_pretrained(base)
    tokenizer.save_pretrained(base)


@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
def test_t02_delimiters_are_learnt_and_emitted_where_they_belong(tied, tmp_path):
    """One row, many steps: greedy decoding writes it out again, delimiters and end of turn included."""
    workshop = Workshop(tmp_path, family="qwen2", tied=tied, spare_rows=9)
    row = make_rows(workshop.tokenizer, [0])[0]
    know_by_heart(workshop.base, row)
    before, _ = load(workshop.base)
    rare = ("sft.log_every=100", "sft.evaluate_every=1000", "sft.save_every=1000")
    fast = ("sft.max_steps=150", "sft.learning_rate=1e-2", "sft.accumulation=1", "lora.dropout=0")
    trained(workshop, tmp_path / "run", "limit=1", *rare, *fast)

    model, tokenizer = load(tmp_path / "run" / "adapter")
    n_prompt = row["labels"].count(-100)
    expected = row["input_ids"][n_prompt:]
    prompt = torch.tensor([row["input_ids"][:n_prompt]])
    output = model.generate(prompt, max_new_tokens=len(expected), eos_token_id=expected[-1], pad_token_id=0)
    assert output[0, n_prompt:].tolist() == expected
    ids = tokenizer.convert_tokens_to_ids(list(DELIMITERS))
    embedding, head = model.get_input_embeddings().weight[ids], model.get_output_embeddings().weight[ids]
    assert (embedding - before.get_input_embeddings().weight[ids]).norm() > 0.01
    assert (head - before.get_output_embeddings().weight[ids]).norm() > 0.01
    assert torch.equal(embedding, head) == model.config.tie_word_embeddings == tied


def test_t14_t19_rows_and_tokenizer_are_left_as_they_are(workshop, tmp_path):
    trainer = trainer_for(workshop, tmp_path)
    built = load_from_disk(str(workshop.data / "train"))
    assert trainer.train_dataset["input_ids"][:] == built["input_ids"][:]
    assert trainer.train_dataset["labels"][:] == built["labels"][:]
    counts = fit(workshop.config("sft.max_steps=1"), workshop.data, tmp_path)
    assert counts["tokens"] == sum(map(len, built["input_ids"]))
    for directory in (tmp_path / "adapter", next((tmp_path / "checkpoints").glob("checkpoint-*"))):
        saved, base = load_tokenizer(directory), load_tokenizer(workshop.base)
        assert saved.get_vocab() == base.get_vocab()
        assert saved.special_tokens_map == base.special_tokens_map
        assert saved.chat_template == base.chat_template


def test_t06_the_end_of_turn_is_supervised_even_where_it_pads(tmp_path):
    tokenizer = make_tokenizer(CHATML, pad="<|im_end|>")
    rows = make_rows(tokenizer, range(3))
    labels = RightPadding()(rows)["labels"]
    for row, label in zip(rows, labels, strict=True):
        assert label[len(row["labels"]) - 1] == tokenizer.eos_token_id
        assert (label[len(row["labels"]) :] == -100).all()


def test_checkpoints_hold_the_adapter_alone(workshop, tmp_path):
    trained(workshop, tmp_path, "sft.save_every=1", "sft.max_steps=2")
    names = load_file(last_checkpoint(tmp_path / "checkpoints") / "adapter_model.safetensors")
    assert all("lora_" in name or "trainable_tokens_delta" in name for name in names)


def test_adherence_is_tracked_and_does_not_disturb_the_training(workshop, tmp_path):
    options = ("sft.max_steps=2", "sft.evaluate_every=1", "lora.dropout=0.2")
    plain, _ = trained(workshop, tmp_path / "plain", *options)
    adherence = "sft.adherence={problems: 2, max_new_tokens: 8, temperature: 1}"
    watched, _ = trained(workshop, tmp_path / "watched", *options, adherence)
    assert_same(plain, watched, 0)
    figures = [row for row in read_figures(tmp_path / "watched") if "eval/balanced" in row]
    assert [row["eval/step"] for row in figures] == [0, 1, 2]
    assert all(0 <= row["eval/balanced"] <= 1 and 0 < row["eval/length"] <= 8 for row in figures)


def test_t21_lack_of_memory_names_the_settings_to_lower(workshop, tmp_path, monkeypatch):
    def exhaust(*_):
        raise torch.OutOfMemoryError

    monkeypatch.setattr("train.rehearsal.RightPadding.__call__", exhaust)
    with pytest.raises(UserError, match="sft.batch_size=1, sft.gradient_checkpointing=False and sft.max_length=16384"):
        trained(workshop, tmp_path)


def test_t21_the_rehearsal_leaves_no_trace(workshop, tmp_path, monkeypatch, capsys):
    options = ("sft.max_steps=2", "lora.dropout=0.2", "sft.warmup=0")
    rehearsed, _ = trained(workshop, tmp_path / "a", *options)
    assert "the longest batch, (1, 179) tokens" in capsys.readouterr().out
    monkeypatch.setattr("train.rehearsal.Rehearsal.on_train_begin", lambda *_, **__: None)
    plain, _ = trained(workshop, tmp_path / "b", *options)
    assert_same(rehearsed, plain, 0)


def test_gradient_checkpointing_trains_the_same_adapter(workshop, tmp_path):
    options = ("sft.max_steps=2", "lora.dropout=0", "sft.warmup=0")
    plain, _ = trained(workshop, tmp_path / "plain", *options)
    frugal, _ = trained(workshop, tmp_path / "frugal", *options, "sft.gradient_checkpointing=true")
    assert_same(plain, frugal, 1e-6)


def test_the_delimiters_learn_at_a_rate_of_their_own(workshop, tmp_path):
    """The first step of Adam moves every weight by its learning rate."""
    moved = {}
    for rate in (1.0, 10.0):
        overrides = ("sft.warmup=0", "sft.weight_decay=0", "sft.schedule=constant", f"sft.delimiter_rate={rate}")
        trainer = trainer_for(workshop, tmp_path / str(rate), "sft.max_steps=1", *overrides)
        before = {name: p.detach().clone() for name, p in trainer.model.named_parameters() if p.requires_grad}
        trainer.train()
        after = dict(trainer.model.named_parameters())
        moved[rate] = {name: (after[name] - weight).abs().max().item() for name, weight in before.items()}
    for name in moved[1.0]:
        ratio = moved[10.0][name] / moved[1.0][name]
        assert ratio == pytest.approx(10 if "trainable_tokens_delta" in name else 1, rel=1e-3), name
    assert any("trainable_tokens_delta" in name for name in moved[1.0])
