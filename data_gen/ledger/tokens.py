"""The ledger's own tokenizer: one token a word, a digit or a sign, and text that survives the round trip byte for byte.

A word carries its leading space and a trailing colon, so that ` ada:`, the token at which a value is looked up, ends
like a sentence boundary of the paper (App. A.3).
"""

import re

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from data_gen.ledger.world import CODES, LABELS, LEDGER, NAMES, SYSTEM

PATTERN = r" ?\\boxed\{|<\|[a-z_]+\|>| ?[A-Za-z]+:?|\n\n|\n|\d|[^\sA-Za-z\d]"
SPECIAL = {"bos": "<|begin_of_text|>", "eos": "<|end_of_turn|>", "pad": "<|pad|>", "unk": "<|unknown|>"}
ROLES = ("<|system|>", "<|user|>", "<|assistant|>")
CHAT_TEMPLATE = (
    "{{ bos_token }}"
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}{{ eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def vocabulary() -> list[str]:
    """Return every token in a fixed order: specials, digits, labels, codes, names without and with colon, words."""
    names = [f" {name}{colon}" for name in NAMES for colon in ("", ":")]
    words: dict[str, None] = {}
    for row in LEDGER.rows("vocabulary", count=8, lengths=[4]):
        for text in (SYSTEM, *(turn["value"] for turn in row["conversations"])):
            words |= dict.fromkeys(re.findall(PATTERN, text))
    labels = [f" {label}" for label in (*LABELS, *CODES)]
    known = [*SPECIAL.values(), *ROLES, *map(str, range(10)), *labels, *names]
    return known + sorted(word for word in words if word not in known)


def ledger_tokenizer() -> PreTrainedTokenizerFast:
    """Build the tokenizer with its chat template."""
    tokenizer = Tokenizer(models.WordLevel({token: i for i, token in enumerate(vocabulary())}, SPECIAL["unk"]))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(PATTERN), behavior="isolated")
    tokenizer.decoder = decoders.Fuse()
    names = {f"{role}_token": token for role, token in SPECIAL.items()}
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=8192, padding_side="left", **names)
    fast.chat_template = CHAT_TEMPLATE
    return fast
