"""Text that chat templates use for control: neutral in what a teacher reads, looked for in what is trained on."""

import re
from typing import TYPE_CHECKING

from zoomr.prompts import render_text
from zoomr.summaries.segments import BEGIN_SUMMARY, END_SUMMARY

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

CONTROL = re.compile(
    r"<(?P<bar>[|\uff5c])(?P<name>[^<>]{1,60}?)(?P=bar)>"
    r"|<(?P<word>/?s|/?think|(?:start|end)_of_turn|bos|eos|pad|unk)>"
    r"|\[(?P<bracket>/?INST|/?SYSTEM_PROMPT)\]"
)
BRACKETED = re.compile(r"<{1,2}[^<>\s]{1,60}>{1,2}|\[/?[A-Z_]{2,}\]")


def neutral(text: str) -> str:
    """Return the text with control tokens of chat templates spelled so that no server takes them for such."""
    return CONTROL.sub(lambda match: f"({next(name for name in match.group('name', 'word', 'bracket') if name)})", text)


def control_texts(tokenizer: "PreTrainedTokenizerBase") -> re.Pattern[str]:
    """Return a pattern of everything that a tokenizer and its template take for control, wherever it stands.

    These are the two summary delimiters, special tokens, other added tokens in a control token's dress (R1's
    `<think>` is not special), and what the template itself writes between brackets around the turns.
    """
    added = tokenizer.added_tokens_decoder.values()
    tokens = {token.content for token in added if token.special or CONTROL.fullmatch(token.content)}
    turns = [{"role": "user", "content": "question"}, {"role": "assistant", "content": "answer"}]
    system = [{"role": "system", "content": "system"}]
    for messages in (turns[:1], turns, system + turns[:1], system + turns):
        tokens |= set(
            BRACKETED.findall(render_text(tokenizer, messages, generation_prompt=messages[-1]["role"] == "user"))
        )
    known = sorted((tokens | {BEGIN_SUMMARY, END_SUMMARY}) - {""}, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, known)))
