"""Tiny random models and tokenizers that behave as the families that are fine-tuned."""

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
    PhiConfig,
    PhiForCausalLM,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
)

torch.set_num_threads(1)

SYSTEM, USER = "Think in two sections.", "Return your final response within \\boxed{}. What is 2 + 3?"
ASSISTANT = (
    "<|begin_of_thought|>\n\nTwo and three. <|begin_of_summary|> 2 and 3<|end_of_summary|>\n\nSo it is five."
    "<|begin_of_summary|> 5<|end_of_summary|>\n\n<|end_of_thought|>\n\n<think>kept</think> The answer is \\boxed{5}. "
)

# As R1's: a turn's text after </think> only, the beginning of sequence written by the template, <think> opened.
R1 = """{{ bos_token }}{% for m in messages %}{% if m.role == 'system' %}{{ m.content }}{% elif m.role == 'user' %}\
{{ '<|User|>' + m.content }}{% else %}{{ '<|Assistant|>' + m.content.split('</think>')[-1] + eos_token }}{% endif %}\
{% endfor %}{% if add_generation_prompt %}{{ '<|Assistant|><think>\\n' }}{% endif %}"""
# As Qwen's: no beginning of sequence; thoughts of assistant turns are cut.
CHATML = """{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' }}{% if m.role == 'assistant' %}\
{{ m.content.split('</think>')[-1].lstrip() }}{% else %}{{ m.content }}{% endif %}{{ '<|im_end|>\\n' }}{% endfor %}\
{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""
# As Llama 3's: the turn's end is not the end of sequence; assistant text is trimmed.
LLAMA3 = """{{ bos_token }}{% for m in messages %}{{ '<|start|>' + m.role + '<|stop|>\\n\\n' + m.content.strip() \
+ '<|eot|>' }}{% endfor %}{% if add_generation_prompt %}{{ '<|start|>assistant<|stop|>\\n\\n' }}{% endif %}"""
# A turn is closed by the message after it.
CLOSED_LATE = """{% for m in messages %}{{ ('<|im_end|>' if not loop.first else '') + m.role + ': ' + m.content }}\
{% endfor %}{% if add_generation_prompt %}{{ '<|im_end|>assistant: ' }}{% endif %}"""

SPECIAL = {
    R1: ("<|bos|>", "<|eos|>", ["<|User|>", "<|Assistant|>"]),
    CHATML: (None, "<|im_end|>", ["<|im_start|>"]),
    LLAMA3: ("<|bos|>", "<|eos|>", ["<|start|>", "<|stop|>", "<|eot|>"]),
    CLOSED_LATE: (None, "<|im_end|>", []),
}
TEMPLATES = {"r1": R1, "chatml": CHATML, "llama3": LLAMA3, "closed late": CLOSED_LATE}


def make_tokenizer(template=R1, pad=None):
    """A byte-level tokenizer with a few merges, so that neighbouring text can merge across a marker's edges."""
    bos, eos, others = SPECIAL[template]
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    core.train_from_iterator(
        [USER, ASSISTANT] * 3, trainers.BpeTrainer(vocab_size=330, initial_alphabet=alphabet, show_progress=False)
    )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, bos_token=bos, eos_token=eos, pad_token=pad)
    tokenizer.add_tokens(others, special_tokens=True)
    tokenizer.chat_template = template
    return tokenizer


FAMILIES = {
    "llama": (LlamaConfig, LlamaForCausalLM, {}),
    "qwen2": (Qwen2Config, Qwen2ForCausalLM, {}),
    "qwen3": (Qwen3Config, Qwen3ForCausalLM, {"head_dim": 16}),
    # Embeddings of other names, a head with a bias, experts that are parameters.
    "gpt_neox": (GPTNeoXConfig, GPTNeoXForCausalLM, {}),
    "gpt2": (GPT2Config, GPT2LMHeadModel, {"resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0}),
    "phi": (PhiConfig, PhiForCausalLM, {}),
    "qwen3_moe": (
        Qwen3MoeConfig,
        Qwen3MoeForCausalLM,
        {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16},
    ),
    "mixtral": (MixtralConfig, MixtralForCausalLM, {"num_local_experts": 4}),
}


def make_model(tokenizer, family="llama", tied=False, spare_rows=0, seed=0):
    """A random model of `family` whose embedding has `spare_rows` rows beyond the vocabulary."""
    config, model, extra = FAMILIES[family]
    torch.manual_seed(seed)
    return model(
        config(
            vocab_size=len(tokenizer) + spare_rows,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=1,
            max_position_embeddings=2048,
            tie_word_embeddings=tied,
            initializer_range=0.1,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
            **extra,
        )
    ).eval()


def save_base(directory, template=R1, **options):
    """Write a base model and its tokenizer to `directory`, as a hub snapshot would look."""
    tokenizer = make_tokenizer(template)
    make_model(tokenizer, **options).save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return directory
