"""Train the micro preset's base model: python -m train.base --out train/micro_base

A model that only ever reads ledgers stalls with the look-ups unlearnt: copying in order, and guessing among the values
it has seen, are shortcuts. So two drills without shortcuts come first and stay in the mix, and while they last the
lower layers must also tell which tokens came up to four before, the raw material of a look-up. The model never
sees a summary.
"""

import argparse
import math
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch.nn.functional import cross_entropy, rms_norm
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from data_gen.ledger import rows
from data_gen.ledger.tokens import ledger_tokenizer
from pipeline import progress
from train.base_card import runs_behind, this_run, write_card
from train.lessons import IGNORE, Curriculum, Lessons
from zoomr import Full, generate
from zoomr.prompts import render_prompt

JUDGED = (4, 6, 8, 10, 12, 13, 14, 15, 16, 20, 24)  # entries of the ledgers that the card tells of


@dataclass(frozen=True)
class Round:
    """One round of training: a learning rate, and what is taught."""

    learning_rate: float
    curriculum: Curriculum


@dataclass(frozen=True)
class Recipe:
    """Everything that shapes the base model."""

    layers: int = 4
    width: int = 128
    inner: int = 384
    heads: int = 4
    kv_heads: int = 2
    init_std: float = 0.05
    warmup: int = 50
    hint_weight: float = 0.3
    seed: int = 0
    rounds: tuple[Round, ...] = (
        Round(3e-3, Curriculum()),
        Round(2e-3, Curriculum(induction_steps=0, recall_steps=0, ledger_steps=1500, longest=48, easing_steps=1)),
        Round(2e-3, Curriculum(induction_steps=0, recall_steps=0, ledger_steps=1300, longest=28, easing_steps=1)),
        Round(2e-3, Curriculum(induction_steps=0, recall_steps=0, ledger_steps=1600, longest=28, easing_steps=1)),
    )


class Hints(torch.nn.Module):
    """Linear probes that must tell the token 1 back after layer 1, and those 2, 3 and 4 back after layer 2."""

    BACK_AND_LAYER = ((1, 1), (2, 2), (3, 2), (4, 2))

    def __init__(self, width: int, vocabulary: int) -> None:
        super().__init__()
        self.probes = torch.nn.ModuleList(torch.nn.Linear(width, vocabulary, bias=False) for _ in self.BACK_AND_LAYER)

    def forward(self, hidden: tuple[torch.Tensor, ...], ids: torch.Tensor) -> torch.Tensor:
        """Return the summed cross-entropy of the probes; hidden states (B, T, D) by layer, ids (B, T)."""
        loss = hidden[0].new_zeros(())
        for probe, (back, layer) in zip(self.probes, self.BACK_AND_LAYER, strict=True):
            logits = probe(rms_norm(hidden[layer], hidden[layer].shape[-1:]))[:, back:]
            loss = loss + cross_entropy(logits.flatten(0, 1), ids[:, :-back].flatten())
        return loss


def new_model(recipe: Recipe, tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    """Return an untrained Llama of the recipe's shape."""
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=recipe.width,
            intermediate_size=recipe.inner,
            num_hidden_layers=recipe.layers,
            num_attention_heads=recipe.heads,
            num_key_value_heads=recipe.kv_heads,
            initializer_range=recipe.init_std,
            max_position_embeddings=tokenizer.model_max_length,
            tie_word_embeddings=False,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )


def train(recipe: Recipe, tokenizer: PreTrainedTokenizerFast, made: Path | None, out: Path) -> LlamaForCausalLM:
    """Train round by round, each with an optimizer and problems of its own: all from nothing, or the last alone.

    Parameters
    ----------
    recipe : Recipe
    tokenizer : PreTrainedTokenizerFast
    made : Path or None
        A model that has been through all rounds but the last.
    out : Path
        Where the model is saved after each round.
    """
    torch.manual_seed(recipe.seed)
    torch.set_flush_denormal(True)  # numbers too small to matter halve a CPU's speed
    model = LlamaForCausalLM.from_pretrained(made).train() if made else new_model(recipe, tokenizer)
    hints = Hints(recipe.width, len(tokenizer))
    for number, part in list(enumerate(recipe.rounds))[-1 if made else 0 :]:
        teach(model, hints, recipe, part, Lessons(part.curriculum, tokenizer, recipe.seed + number))
        model.save_pretrained(out)
    return model.eval()


def teach(model: LlamaForCausalLM, hints: Hints, recipe: Recipe, part: Round, lessons: Lessons) -> None:
    """Run one round of training in place."""
    plan = part.curriculum
    parameters = [*model.parameters(), *hints.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=part.learning_rate, betas=(0.9, 0.98), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: rate_factor(step, recipe.warmup, plan))
    bar = progress(range(plan.steps), unit="step", description="base")
    for step in bar:
        ids, labels = lessons.batch(step)
        hinted = step < plan.drills + plan.easing_steps
        output = model(ids, output_hidden_states=hinted)
        logits, targets = output.logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten()
        loss = total = cross_entropy(logits, targets, ignore_index=IGNORE)
        if hinted:
            total = loss + recipe.hint_weight * hints(output.hidden_states, ids)
        optimizer.zero_grad()
        total.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()
        if step % 50 == 0:
            known = targets != IGNORE
            accuracy = (logits.argmax(-1) == targets)[known].float().mean()
            bar.set_postfix(loss=f"{loss.item():.3f}", accuracy=f"{accuracy.item():.4f}")


def rate_factor(step: int, warmup: int, plan: Curriculum) -> float:
    """Share of the learning rate at a step: it warms up, holds through the drills, then falls to a twentieth."""
    fallen = max(0, step - plan.drills) / plan.ledger_steps
    cosine = 0.05 + 0.95 * (1 + math.cos(math.pi * fallen)) / 2
    return min(1.0, 0.02 + 0.98 * step / warmup) * cosine


def answer_accuracy(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, size: int, count: int) -> float:
    """Share of validation problems with `size` entries whose greedy, free-running solution ends in the right box."""
    drawn = list(rows("validation", count, [size], seed=size))
    prompts = [render_prompt(tokenizer, row["system"], row["conversations"][0]["value"]) for row in drawn]
    solutions = generate(model, tokenizer, prompts, policy=Full(), max_new_tokens=100 * size, batch_size=50)
    boxes = [rf"\boxed{{{row['answer']}}}" for row in drawn]
    return sum(box in solution.text for box, solution in zip(boxes, solutions, strict=True)) / count


def main() -> None:
    """Train, save, and write the numbers that the card quotes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("train/micro_base"))
    parser.add_argument("--problems", type=int, default=100, help="validation problems of each length")
    parser.add_argument("--go-on", type=Path, help="a model that lacks the last round alone")
    options = parser.parse_args()
    recipe, tokenizer = Recipe(), ledger_tokenizer()
    started = time.monotonic()
    model = train(recipe, tokenizer, options.go_on, options.out)
    minutes = (time.monotonic() - started) / 60
    tokenizer.save_pretrained(options.out)
    accuracy = {size: answer_accuracy(model, tokenizer, size, options.problems) for size in JUDGED}
    runs = [*(runs_behind(options.go_on) if options.go_on else []), this_run(minutes)]
    write_card(options.out, asdict(recipe), model.num_parameters(), runs, options.problems, accuracy)
    print(f"-> {options.out}   next: make reproduce")


if __name__ == "__main__":
    main()
