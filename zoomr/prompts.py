"""Token ids of prompts and of training rows, rendered in one place so that evaluation sees what training saw.

A chat template renders the prompt only. Templates of reasoning models cut the thoughts out of assistant turns, and
others re-format them, so the assistant's text is appended here, followed by the token that ends a turn.
"""

from typing import TYPE_CHECKING

from zoomr.errors import UserError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# Opened by the generation prompt of the R1 templates; the traces open their thoughts with a delimiter of their own.
THINK_PREFIX = "<think>\n"


def render_prompt(tokenizer: "PreTrainedTokenizerBase", system: str, user: str) -> list[int]:
    """Return the ids after which the assistant's first token follows.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerBase
        A tokenizer with a chat template.
    system : str
        The system message; empty for none.
    user : str
        The user's message.

    Returns
    -------
    list of int
        The prompt, with at most one beginning-of-sequence token, which the template writes.

    Raises
    ------
    UserError
        If the tokenizer has no chat template.
    """
    text = _render(tokenizer, _messages(system, user), prompt=True)
    return tokenizer(text.removesuffix(THINK_PREFIX), add_special_tokens=False)["input_ids"]


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
    turn = _render(tokenizer, [*_messages("", "question"), {"role": "assistant", "content": "answer"}], prompt=False)
    closing = tokenizer(turn.rpartition("answer")[2], add_special_tokens=False)["input_ids"]
    special = {index for index, token in tokenizer.added_tokens_decoder.items() if token.special}
    return next((index for index in closing if index in special), tokenizer.eos_token_id)


def _messages(system: str, user: str) -> list[dict[str, str]]:
    messages = [{"role": "system", "content": system}] if system else []
    return [*messages, {"role": "user", "content": user}]


def _render(tokenizer: "PreTrainedTokenizerBase", messages: list[dict[str, str]], prompt: bool) -> str:
    if tokenizer.chat_template is None:
        raise UserError(f"The tokenizer of model.path={tokenizer.name_or_path} has no chat template.")
    return str(tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=prompt))
