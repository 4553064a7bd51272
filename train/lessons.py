"""What the base model of the micro preset is taught: two drills without shortcuts, then ledgers."""

import math
import random
from dataclasses import dataclass

import torch
from transformers import PreTrainedTokenizerFast

from data_gen.ledger import rows
from data_gen.ledger.world import CODES, LABELS, NAMES
from zoomr.prompts import render_row

IGNORE = -100

Batch = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class Curriculum:
    """Sizes of the lessons.

    Attributes
    ----------
    induction_steps, recall_steps, ledger_steps : int
        Optimizer steps of the three parts, in this order.
    drill_tokens, ledger_tokens : int
        Tokens a step, about.
    shortest, longest : int
        Entries of the ledgers, log-uniform between the two.
    drill_share : float
        Share of drills that stays among the ledgers.
    easing_steps : int
        Ledger steps in which that share falls from one half.
    """

    induction_steps: int = 650
    recall_steps: int = 250
    ledger_steps: int = 1600
    drill_tokens: int = 2048
    ledger_tokens: int = 4096
    shortest: int = 4
    longest: int = 20
    drill_share: float = 0.15
    easing_steps: int = 300

    @property
    def drills(self) -> int:
        """Steps before the first ledger."""
        return self.induction_steps + self.recall_steps

    @property
    def steps(self) -> int:
        """All steps."""
        return self.drills + self.ledger_steps

    def drills_at(self, step: int) -> float:
        """Share of drills at a step of the ledgers: what is suddenly no longer asked for is forgotten."""
        eased = min(1.0, (step - self.drills) / self.easing_steps)
        return 0.5 + (self.drill_share - 0.5) * eased


class Lessons:
    """Batches of token ids (B, T) and labels (B, T), drawn from a seed."""

    def __init__(self, curriculum: Curriculum, tokenizer: PreTrainedTokenizerFast, seed: int) -> None:
        self.curriculum, self.tokenizer, self.seed = curriculum, tokenizer, seed
        self.rng = random.Random(f"lessons {seed}")
        vocabulary = tokenizer.get_vocab()
        self.digits = [vocabulary[str(digit)] for digit in range(10)]
        self.names = [vocabulary[f" {name}{colon}"] for name in NAMES for colon in ("", ":")]
        self.labels = [vocabulary[f" {label}"] for label in LABELS]
        self.codes = [vocabulary[f" {code}"] for code in CODES]
        self.look_ups = [vocabulary[f" {name}:"] for name in NAMES]
        self.stop, self.holds = vocabulary["."], vocabulary["#"]
        self.ledgers_drawn = 0

    def batch(self, step: int) -> Batch:
        """Return the batch of a step."""
        if step < self.curriculum.induction_steps:
            return self.induction(length=64)
        if step < self.curriculum.drills:
            return self.rng.choice([self.induction, self.recall])(length=self.rng.choice([64, 128, 256]))
        if self.rng.random() < self.curriculum.drills_at(step):
            return self.rng.choice([self.induction, self.recall])(length=self.rng.choice([128, 256, 512]))
        return self.ledger()

    def induction(self, length: int) -> Batch:
        """Random segments of names, labels, codes and digits that come back in random order; all is learnt."""
        alphabet = self.names + self.labels + self.codes + self.digits
        batch = []
        for _ in range(self.curriculum.drill_tokens // length):
            size, count = self.rng.randint(3, 10), self.rng.randint(2, max(3, length // 32))
            segments = [self.rng.choices(alphabet, k=size) for _ in range(count)]
            row: list[int] = []
            while len(row) < length:
                row += self.rng.choice(segments)
            batch.append(row[:length])
        return torch.tensor(batch), torch.tensor(batch)

    def recall(self, length: int) -> Batch:
        """Names with codes and two-digit values, asked again in another order; only what can be known is learnt."""
        batch, labels = [], []
        for _ in range(self.curriculum.drill_tokens // length):
            count = self.rng.randint(2, max(3, length // 20))
            names, codes = self.rng.sample(self.look_ups, count), self.rng.sample(self.codes, count)
            facts = {
                name: [code, self.holds, *self.rng.choices(self.digits, k=2)]
                for name, code in zip(names, codes, strict=True)
            }
            told: set[int] = set()
            row: list[int] = []
            target: list[int] = []
            while len(row) < length:
                name = self.rng.choice(names)
                row += [name, *facts[name], self.stop]
                known = facts[name] if name in told else [IGNORE, self.holds, *[IGNORE] * 2]
                target += [IGNORE, *known, self.stop]
                told.add(name)
            batch.append(row[:length])
            labels.append(target[:length])
        return torch.tensor(batch), torch.tensor(labels)

    def ledger(self) -> Batch:
        """Ledgers of one length with their reasoning; the assistant's tokens are learnt."""
        plan = self.curriculum
        size = round(math.exp(self.rng.uniform(math.log(plan.shortest), math.log(plan.longest))))
        batch: list[list[int]] = []
        labels = []
        while not batch or (len(batch) + 1) * len(batch[0]) <= plan.ledger_tokens:
            row = next(rows(f"base{self.ledgers_drawn}", 1, [size], self.seed))
            self.ledgers_drawn += 1
            user, assistant = (turn["value"] for turn in row["conversations"])
            ids, prompt = render_row(self.tokenizer, row["system"], user, assistant)
            batch.append(ids)
            labels.append([IGNORE] * prompt + ids[prompt:])
        width = max(map(len, batch))
        pad = self.tokenizer.pad_token_id
        ids_padded = [ids + [pad] * (width - len(ids)) for ids in batch]
        labels_padded = [row + [IGNORE] * (width - len(row)) for row in labels]
        return torch.tensor(ids_padded), torch.tensor(labels_padded)
