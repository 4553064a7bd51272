"""The loss of the votes: what decoding would see at each refresh, and a gradient towards what is looked at."""

import pytest
import torch

from tests.train.test_fit import trainer_for
from tests.train.test_under_policy import STORIES, batch
from tests.zoomr.conftest import tokenizer  # noqa: F401
from tests.zoomr.tiny import make_model
from train.vote_loss import Sight, VoteLoss
from zoomr import OracleZoom, ZoomR, teacher_forced
from zoomr.policies.oracle_zoom import attention_mass
from zoomr.runs import UserError

WINDOW = 8


def loss_of(model, tokenizer, ids, labels):  # noqa: F811
    """The votes' loss alone."""
    sight = Sight()
    model.set_attn_implementation("zoomr")
    model(input_ids=ids, zoomr=sight)
    return VoteLoss(1.0, ZoomR(window=WINDOW), tokenizer).loss(sight, ids, labels)


class Watched(OracleZoom):
    """Notes what `VoteLoss` should find, from what decoding with the full cache sees."""

    seen: list = []

    def refresh(self, view, votes):
        mass = attention_mass(view) / (view.queries.shape[0] * view.queries.shape[2])
        layers, rows, heads, width = view.queries.shape
        grouped = view.queries.reshape(layers, rows, view.means.shape[2], -1, width)
        scores = grouped @ view.means.transpose(-1, -2) * view.scaling
        for row in range(rows):
            ends = [int((view.labels[row] <= 2 * n + 1).sum()) for n in range(view.candidates.shape[1])]
            far = view.candidates[row] & (torch.tensor(ends) <= view.last[row] - WINDOW)
            if far.any():
                known = scores[:, row, ..., : int(view.finished[row])].log_softmax(-1).mean((0, 1, 2))
                most = torch.where(far, mass[row], 0).max(0)
                self.seen.append((most.values**2, -known[most.indices]))
        return super().refresh(view, votes)


def test_it_is_what_decoding_would_see(tokenizer):  # noqa: F811
    model = make_model()
    ids, labels = batch()
    Watched.seen = []
    for row, story in enumerate(STORIES):
        prompt = ids[row, : int((labels[row] >= 0).int().argmax())].tolist()
        teacher_forced(model, tokenizer, [prompt], [story], policy=Watched(window=10**6), mode="mask")
    weights, surprise = (torch.stack(part).double() for part in zip(*Watched.seen, strict=True))
    expected = (weights * surprise).sum() / weights.sum()
    assert len(weights) > 10
    torch.testing.assert_close(loss_of(model, tokenizer, ids, labels).double(), expected, atol=1e-4, rtol=0)


def test_its_gradient_moves_votes_to_what_is_looked_at(tokenizer):  # noqa: F811
    torch.manual_seed(0)
    model = make_model()
    ids, labels = batch()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(20):
        loss = loss_of(model, tokenizer, ids, labels)
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)
        optimizer.step()
    assert losses[-1] < losses[0] / 2


def test_the_trainer_adds_it_while_training_and_not_at_evaluation(workshop, tmp_path):
    found = {}
    for weight in (0.0, 1.0, 2.0):
        settings = ("lora.dropout=0", f"sft.vote_loss={weight}", "generation.window=8")
        trainer = trainer_for(workshop, tmp_path / str(weight), *settings)
        rows = trainer.data_collator([trainer.train_dataset[i] for i in range(3)])
        losses = []
        for mode in (True, False):
            trainer.model.train(mode)
            losses.append(trainer.compute_loss(trainer.model, dict(rows)).item())
        found[weight] = losses
    trained, evaluated = zip(*found.values(), strict=True)
    assert evaluated == pytest.approx([evaluated[0]] * 3)
    assert trained[0] == pytest.approx(evaluated[0])
    votes = trained[1] - trained[0]
    assert votes > 0.01
    assert trained[2] - trained[0] == pytest.approx(2 * votes, rel=1e-3)


def test_checkpointed_activations_are_refused(tokenizer):  # noqa: F811
    model = make_model()
    model.gradient_checkpointing_enable()
    with pytest.raises(UserError, match="sft.vote_loss needs sft.gradient_checkpointing=false"):
        VoteLoss(0.5, ZoomR(), tokenizer).install(model)
