"""Token ids of prompts and of training rows, rendered in one place so that evaluation sees what training saw.

A chat template renders the prompt only. Templates of reasoning models cut the thoughts out of assistant turns, and
others re-format them, so the assistant's text is appended here, followed by the token that ends a turn.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from os.path import commonprefix
from typing import TYPE_CHECKING, Any

from zoomr.errors import UserError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Message = Mapping[str, str]
Prompt = str | Sequence[Message] | Sequence[int]  # text, chat messages, or token ids

# Opened, or opened and closed, by the generation prompt of reasoning models; traces open their thoughts themselves.
THINK_TAGS = re.compile(
    r"(?:[<\[\u25c1][|\uff5c/]{0,2}[a-z_:]*(?:think|thought|reason)[a-z_]*[|\uff5c]?[>\]\u25b7]\s*)+$", re.I
)
# Some templates write the date; a prompt must not depend on the day. This one is Llama 3.1's own default. transformers
# hands no functions to a template, so the template is given its own.
DAY = datetime(2024, 7, 26)
DIRECTIVES = "".join(f"|replace('%{d}', '{DAY.strftime(f'%{d}')}')" for d in (*"aAbBcdHIjmMpSUwWxXyY", "-d", "-m"))
SAME_DAY = "{% macro strftime_now(form) %}{{ form" + DIRECTIVES + " }}{% endmacro %}{{ '' }}"


def as_prompts(prompts: Any) -> list[Prompt]:
    """Return several prompts as a list.

    Parameters
    ----------
    prompts : sequence of str, of chat messages (sequences of mappings with role and content) or of token ids
        A single prompt is refused, since a text is a sequence of texts and ids are a sequence too.

    Raises
    ------
    UserError
        If it is one prompt, or no sequence of prompts.
    """
    if isinstance(prompts, str | bytes | Mapping) or not hasattr(prompts, "__iter__"):
        raise UserError(f"prompts is a {type(prompts).__name__}; give a list of prompts, such as [prompt].")
    found = [prompt.tolist() if hasattr(prompt, "tolist") else prompt for prompt in prompts]
    for index, prompt in enumerate(found):
        if isinstance(prompt, int | Mapping):
            kind = "token ids" if isinstance(prompt, int) else "one conversation"
            raise UserError(f"prompts is a flat list of {kind}; give a list of prompts, such as [prompt].")
        if not isinstance(prompt, str) and not _is_messages(prompt) and not _is_ids(prompt):
            raise UserError(f"prompts: number {index} is neither text, nor chat messages, nor a list of token ids.")
    return found


def token_ids(tokenizer: "PreTrainedTokenizerBase", prompt: Prompt) -> list[int]:
    """Return the ids of a prompt: text as it is, chat messages as `render_prompt` renders them, token ids unchanged.

    Raises
    ------
    UserError
        If messages are given and the tokenizer's template does not take them.
    """
    if isinstance(prompt, str):
        return tokenizer(prompt)["input_ids"]
    return _render_messages(tokenizer, prompt) if _is_messages(prompt) else list(prompt)  # type: ignore[arg-type]


def render_prompt(tokenizer: "PreTrainedTokenizerBase", system: str, user: str) -> list[int]:
    """Return the ids after which the assistant's first token follows.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerBase
        A tokenizer with a chat template.
    system : str
        The system message; empty for none. Where the template has no place for it, it opens the user's message.
    user : str
        The user's message.

    Returns
    -------
    list of int
        The prompt, with at most one beginning-of-sequence token, which the template writes, and without think tags
        after the last message.

    Raises
    ------
    UserError
        If the tokenizer has no chat template, or one that does not take such messages.
    """
    messages = [{"role": "system", "content": system}] if system else []
    return _render_messages(tokenizer, [*messages, {"role": "user", "content": user}])


def render_row(tokenizer: "PreTrainedTokenizerBase", system: str, user: str, assistant: str) -> tuple[list[int], int]:
    """Return a training row: the prompt, the assistant's text and the token that ends the turn.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerBase
        A tokenizer with a chat template.
    system, user, assistant : str
        The three turns; the assistant's text is kept to the last byte.

    Returns
    -------
    input_ids : list of int
        The row. Its first `n_prompt` ids are those of `render_prompt`.
    n_prompt : int
        Length of the prompt in tokens.
    """
    prompt = render_prompt(tokenizer, system, user)
    answer = tokenizer(assistant, add_special_tokens=False)["input_ids"]
    return [*prompt, *answer, end_of_turn(tokenizer)], len(prompt)


def end_of_turn(tokenizer: "PreTrainedTokenizerBase") -> int:
    """Return the id that ends an assistant's turn: the template's own marker, the end-of-sequence token without one.

    A template's marker may differ from the tokenizer's end-of-sequence token; training on one and waiting for the
    other would let generations run on.
    """
    messages = [{"role": "user", "content": "question"}, {"role": "assistant", "content": "answer"}]
    turn = render_text(tokenizer, messages, generation_prompt=False)
    closing = tokenizer(turn.rpartition("answer")[2], add_special_tokens=False)["input_ids"]
    special = {index for index, token in tokenizer.added_tokens_decoder.items() if token.special}
    return next((index for index in closing if index in special), tokenizer.eos_token_id)


def render_text(tokenizer: "PreTrainedTokenizerBase", messages: Sequence[Message], generation_prompt: bool) -> str:
    """Return what the chat template makes of messages, on a day that is always the same.

    A system message that the template refuses or leaves out is put in front of the first message of the user.

    Raises
    ------
    UserError
        If there is no template, or it refuses the messages or leaves one of them out.
    """
    if tokenizer.chat_template is None:
        raise UserError(f"The tokenizer of {tokenizer.name_or_path!r} has no chat template.")
    try:
        return _apply(tokenizer, messages, generation_prompt)
    except UserError:
        if not messages or messages[0]["role"] != "system" or len(messages) == 1:
            raise
        system, first, *others = messages
        joined = {**first, "content": f"{system['content']}\n\n{first['content']}"}
        return _apply(tokenizer, [joined, *others], generation_prompt)


def _apply(tokenizer: "PreTrainedTokenizerBase", messages: Sequence[Message], generation_prompt: bool) -> str:
    from jinja2 import TemplateError

    template = tokenizer.get_chat_template()
    if "strftime_now" in template:
        template = SAME_DAY + template
    name = f"The chat template of {tokenizer.name_or_path!r}"
    try:
        text = str(
            tokenizer.apply_chat_template(
                [dict(message) for message in messages],
                chat_template=template,
                tokenize=False,
                add_generation_prompt=generation_prompt,
            )
        )
    except TemplateError as error:
        raise UserError(f"{name} refuses {_roles(messages)}: {error}.") from error
    # A reasoning model's template cuts the thought out of an assistant's turn, and means to.
    if lost := [m["role"] for m in messages if m["role"] != "assistant" and m["content"].strip() not in text]:
        raise UserError(f"{name} leaves the {lost[0]} message out of {_roles(messages)}.")
    return text


def _render_messages(tokenizer: "PreTrainedTokenizerBase", messages: Any) -> list[int]:
    text = render_text(tokenizer, messages, generation_prompt=True)
    # Think tags within a message are the user's, and stay.
    said = len(commonprefix([text, render_text(tokenizer, messages, generation_prompt=False)]))
    prompt = text[:said] + THINK_TAGS.sub("", text[said:])
    return tokenizer(prompt, add_special_tokens=False)["input_ids"]


def _roles(messages: Sequence[Message]) -> str:
    return ", ".join(message["role"] for message in messages)


def _is_messages(prompt: Any) -> bool:
    return (
        _is_list(prompt)
        and len(prompt) > 0
        and all(
            isinstance(message, Mapping) and all(isinstance(message.get(key), str) for key in ("role", "content"))
            for message in prompt
        )
    )


def _is_ids(prompt: Any) -> bool:
    return _is_list(prompt) and all(isinstance(token, int) and not isinstance(token, bool) for token in prompt)


def _is_list(prompt: Any) -> bool:
    return isinstance(prompt, Sequence) and not isinstance(prompt, str | bytes)
