"""Evaluation's prompt is a prefix of the training row, and nothing of the assistant's text is lost."""

import pytest

from tests.train.tiny import ASSISTANT, CHATML, CLOSED_LATE, LLAMA3, R1, SYSTEM, TEMPLATES, USER, make_tokenizer
from zoomr.errors import UserError
from zoomr.loading import add_delimiters
from zoomr.prompts import end_of_turn, render_prompt, render_row
from zoomr.summaries.segments import BEGIN_SUMMARY, END_SUMMARY


@pytest.fixture(params=TEMPLATES.values(), ids=TEMPLATES.keys())
def tokenizer(request):
    made = make_tokenizer(request.param)
    add_delimiters(made)
    return made


def test_t12_the_prompt_is_an_exact_prefix_of_the_row(tokenizer):
    row, n_prompt = render_row(tokenizer, SYSTEM, USER, ASSISTANT)
    assert row[:n_prompt] == render_prompt(tokenizer, SYSTEM, USER)


def test_t11_the_assistants_text_survives_byte_for_byte(tokenizer):
    row, n_prompt = render_row(tokenizer, SYSTEM, USER, ASSISTANT)
    assert tokenizer.decode(row[n_prompt:-1], skip_special_tokens=False) == ASSISTANT
    assert [tokenizer.decode([i]) for i in row].count(BEGIN_SUMMARY) == ASSISTANT.count(BEGIN_SUMMARY) == 2
    assert [tokenizer.decode([i]) for i in row].count(END_SUMMARY) == 2


def test_t12_no_think_tag_is_opened_in_the_prompt(tokenizer):
    assert "<think>" not in tokenizer.decode(render_prompt(tokenizer, SYSTEM, USER))


def test_t13_one_beginning_of_sequence_where_the_template_writes_one(tokenizer):
    row, n_prompt = render_row(tokenizer, SYSTEM, USER, ASSISTANT)
    if "bos_token" in tokenizer.chat_template:
        assert row[0] == tokenizer.bos_token_id
        assert row.count(tokenizer.bos_token_id) == 1
    else:
        assert tokenizer.bos_token is None


@pytest.mark.parametrize(
    ("template", "marker"), [(R1, "<|eos|>"), (CHATML, "<|im_end|>"), (LLAMA3, "<|eot|>"), (CLOSED_LATE, "<|im_end|>")]
)
def test_t07_t08_the_row_ends_with_the_templates_own_end_of_turn(template, marker):
    tokenizer = make_tokenizer(template)
    row, _ = render_row(tokenizer, SYSTEM, USER, ASSISTANT)
    assert tokenizer.convert_ids_to_tokens(row[-1]) == marker
    assert end_of_turn(tokenizer) == row[-1]
    assert row[-2] != row[-1]


def test_an_empty_system_message_is_left_out(tokenizer):
    assert render_prompt(tokenizer, "", USER) != render_prompt(tokenizer, SYSTEM, USER)
    assert SYSTEM not in tokenizer.decode(render_prompt(tokenizer, "", USER))


def test_a_tokenizer_without_a_template_is_refused():
    tokenizer = make_tokenizer()
    tokenizer.chat_template = None
    with pytest.raises(UserError, match="model.path=.* has no chat template"):
        render_prompt(tokenizer, SYSTEM, USER)
