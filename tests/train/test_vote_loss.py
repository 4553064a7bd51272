"""The votes' loss: the slow reading of its text, nothing else changed, and votes that move to where attention looks."""

import pytest
import torch

from tests.train.conftest import make_rows
from tests.train.test_fit import trainer_for
from tests.zoomr.tiny import make_model
from train.vote_loss import Ballots, VoteLoss, VoteTrainer
from zoomr.compat import sdpa_attention_forward

BEGIN, END, STOP = 1, 2, 3
WINDOW = 6


def random_row(seed, paragraphs):
    """A prompt of five tokens, then paragraphs of two sentences, each with its summary."""
    words = torch.randint(10, 60, (500,), generator=torch.Generator().manual_seed(seed)).tolist()
    row = [words.pop() for _ in range(5)]
    for number in range(paragraphs):
        row += [words.pop(), words.pop(), STOP] * 2 + [words.pop()] * (number % 2)
        row += [BEGIN, *(words.pop() for _ in range(1 + number % 3)), END]
    return row + [words.pop(), STOP, words.pop()]


class Recorder:
    def __init__(self):
        self.layers = []

    def attend(self, module, query, key, value, mask, scaling):
        self.layers.append((query.detach(), key.detach(), scaling))
        return sdpa_attention_forward(module, query, key, value, mask, scaling=scaling)[0]


def slow_loss(layers, rows):
    """Token by token, from the module's text."""
    loss = weight = 0.0
    for index, row in enumerate(rows):
        begins = [position for position, token in enumerate(row) if token == BEGIN]
        ends = [position for position, token in enumerate(row) if token == END]
        starts = [5] + [end + 1 for end in ends[:-1]]
        boundaries = [p for p, token in enumerate(row) if token == STOP and sum(end < p for end in ends) > 1]
        for boundary, following in zip(boundaries, [*boundaries[1:], len(row) - 1], strict=False):
            finished = sum(end < boundary for end in ends)
            given, logs, heads = [0.0] * finished, torch.zeros(finished), 0
            for query, key, scaling in layers:
                for head in range(query.shape[1]):
                    heads += 1
                    q, k = query[index, head], key[index, head // (query.shape[1] // key.shape[1])]
                    means = torch.stack([k[b + 1 : e].mean(0) for b, e in zip(begins, ends, strict=True)][:finished])
                    logs += (means @ q[boundary] * scaling).log_softmax(0)
                    for token in range(boundary + 1, following + 1):
                        weights = (k[: token + 1] @ q[token] * scaling).softmax(0)
                        for n in range(finished):
                            inside = range(starts[n], min(ends[n], boundary - WINDOW) + 1)
                            given[n] += sum(float(weights[p]) for p in inside)
            loss -= sum(share * float(log) for share, log in zip(given, logs, strict=True)) / heads
            weight += sum(given)
    return loss / weight


@pytest.fixture
def rows():
    return [random_row(0, 4), random_row(1, 2), random_row(2, 1)]


def run(model, rows, observer):
    model.set_attn_implementation("zoomr")
    length = max(map(len, rows))
    padded = torch.tensor([row + [0] * (length - len(row)) for row in rows])
    return model(input_ids=padded, zoomr=observer).logits


def ballots(rows):
    return [Ballots.of(row, 5, (BEGIN, END), {STOP}) for row in rows]


def test_the_loss_is_that_of_its_text_and_the_forward_is_as_ever(rows):
    model, recorder, votes = make_model(), Recorder(), VoteLoss(ballots(rows), WINDOW)
    logits = run(model, rows, votes)
    torch.testing.assert_close(logits, run(model, rows, recorder))
    assert votes.value().item() == pytest.approx(slow_loss(recorder.layers, rows), rel=1e-4)


def test_what_attention_gives_is_a_target_without_a_gradient(rows):
    model = make_model()
    votes = VoteLoss(ballots(rows), WINDOW)
    run(model, rows, votes)
    votes.value().backward()
    reached = {name for name, parameter in model.named_parameters() if parameter.grad is not None}
    assert any("q_proj" in name for name in reached)
    last = len(model.model.layers) - 1
    # the last layer's values and everything behind them serve the target alone
    assert not any(f"layers.{last}.self_attn.v_proj" in name or "lm_head" in name for name in reached)


def test_rows_in_which_nothing_votes_have_no_loss():
    row = random_row(0, 1)
    votes = VoteLoss(ballots([row]), WINDOW)
    run(make_model(), [row], votes)
    assert votes.value().item() == 0.0


def test_the_trainer_adds_the_weighted_loss_in_training_alone(workshop, tmp_path):
    options = ("lora.dropout=0", "votes.window=4")
    plain = trainer_for(workshop, tmp_path, *options)
    ours = trainer_for(workshop, tmp_path, *options, "votes.weight=0.5")
    assert isinstance(ours, VoteTrainer) and not isinstance(plain, VoteTrainer)
    batch = plain.data_collator(make_rows(workshop.tokenizer, range(3)))
    for trainer in (plain, ours):
        trainer.model.train()
    votes = VoteLoss([ours._ballots(*row) for row in zip(batch["input_ids"], batch["labels"], strict=True)], 4)
    ours.model(input_ids=batch["input_ids"], zoomr=votes)
    assert votes.value() > 0
    added = ours.compute_loss(ours.model, dict(batch)) - plain.compute_loss(plain.model, dict(batch))
    torch.testing.assert_close(added, 0.5 * votes.value(), atol=1e-5, rtol=0)
    for trainer in (plain, ours):
        trainer.model.eval()
    same = [trainer.compute_loss(trainer.model, dict(batch)) for trainer in (plain, ours)]
    torch.testing.assert_close(*same, atol=1e-6, rtol=0)


@pytest.mark.parametrize("checkpointing", ["true", "false"])
def test_training_on_it_moves_the_votes(workshop, tmp_path, checkpointing):
    options = ("lora.dropout=0", "votes.window=4", "sft.learning_rate=2e-2", "sft.max_steps=8", "sft.accumulation=1")
    trainer = trainer_for(
        workshop, tmp_path, *options, "votes.weight=1.0", f"sft.gradient_checkpointing={checkpointing}"
    )
    with torch.no_grad():
        for name, parameter in trainer.model.named_parameters():
            if "q_proj" in name or "k_proj" in name:
                parameter.mul_(3)  # attention that prefers something
    batch = trainer.data_collator(make_rows(workshop.tokenizer, range(3)))

    def measure():
        votes = VoteLoss([trainer._ballots(*row) for row in zip(batch["input_ids"], batch["labels"], strict=True)], 4)
        with torch.no_grad():
            trainer.model.eval()(input_ids=batch["input_ids"], zoomr=votes)
        return votes.value().item()

    before = measure()
    trainer.train()
    assert measure() < before - 0.02
