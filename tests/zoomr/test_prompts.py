"""Evaluation's prompt is a prefix of the training row, and nothing of the assistant's text is lost."""

import pytest
import torch

from tests.train.tiny import ASSISTANT, CHATML, CLOSED_LATE, LLAMA3, R1, SYSTEM, TEMPLATES, USER, make_tokenizer
from zoomr.errors import UserError
from zoomr.loading import add_delimiters
from zoomr.prompts import as_prompts, end_of_turn, render_prompt, render_row, token_ids
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
    with pytest.raises(UserError, match="has no chat template"):
        render_prompt(tokenizer, SYSTEM, USER)


MESSAGES = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": USER}]


def test_chat_messages_are_rendered_as_training_rendered_them(tokenizer):
    assert token_ids(tokenizer, MESSAGES) == render_prompt(tokenizer, SYSTEM, USER)
    assert token_ids(tokenizer, MESSAGES[1:]) == render_prompt(tokenizer, "", USER)
    assert token_ids(tokenizer, USER) == tokenizer(USER)["input_ids"]
    assert token_ids(tokenizer, (3, 4)) == [3, 4]


THINK_TAGS = [
    *("<think>", "<think>\n", "<think>\n\n", "<think> ", "</think>", "<think>\n\n</think>\n\n"),
    *("<thinking>\n", "<thought>", "<|think|>", "[THINK]", "\u25c1think\u25b7", "<seed:think>", "<\uff5cthink\uff5c>"),
    *("<|START_THINKING|>", "<|begin_of_thought|>\n\n", "<reasoning>"),
]


@pytest.mark.parametrize("tag", THINK_TAGS)
def test_n10_no_think_tag_stays_at_the_end_of_a_prompt(tag):
    tokenizer = make_tokenizer(CHATML)
    plain = token_ids(tokenizer, MESSAGES)
    tokenizer.chat_template = CHATML.replace("assistant\\n' }}", "assistant\\n" + tag.replace("\n", "\\n") + "' }}")
    assert tag.strip() in tokenizer.apply_chat_template(MESSAGES, tokenize=False, add_generation_prompt=True)
    assert token_ids(tokenizer, MESSAGES) == render_prompt(tokenizer, SYSTEM, USER) == plain


@pytest.mark.parametrize("text", ["What does <think> mean? <think>", "think", "<", "assistant"])
def test_n10_what_the_user_says_of_think_tags_stays(tokenizer, text):
    opened = "<think>" in tokenizer.chat_template
    ids = token_ids(tokenizer, [{"role": "user", "content": text}])
    rendered = tokenizer.apply_chat_template(
        [{"role": "user", "content": text}], tokenize=False, add_generation_prompt=True
    )
    assert tokenizer.decode(ids) == (rendered.removesuffix("<think>\n") if opened else rendered)


GEMMA = """{{ bos_token }}{% for m in messages %}\
{% if m.role == 'system' %}{{ raise_exception('System role not supported') }}\
{% endif %}{{ '<|start|>' + m.role + ' ' + m.content | trim + '<|eot|>' }}{% endfor %}\
{% if add_generation_prompt %}{{ '<|start|>model ' }}{% endif %}"""
SILENT = GEMMA.replace("{{ raise_exception('System role not supported') }}", "{% continue %}")
ALTERNATES = GEMMA.replace("m.role == 'system'", "(m.role == 'user') != (loop.index0 % 2 == 0)")


@pytest.mark.parametrize("template", [GEMMA, SILENT, ALTERNATES], ids=["refused", "left out", "roles alternate"])
def test_n10_a_system_text_without_a_place_opens_the_users(template):
    tokenizer = make_tokenizer(LLAMA3)
    tokenizer.chat_template = template
    ids = render_prompt(tokenizer, SYSTEM, USER)
    assert ids == token_ids(tokenizer, MESSAGES) == render_prompt(tokenizer, "", f"{SYSTEM}\n\n{USER}")
    assert f"{SYSTEM}\n\n{USER}" in tokenizer.decode(ids)


@pytest.mark.parametrize(
    ("template", "sentence"),
    [
        ("{{ raise_exception('not today') }}", "refuses user: not today"),
        ("{{ messages[0].missing.field }}", "refuses user: 'dict object' has no attribute 'missing'"),
        ("{{ bos_token }}", "leaves the user message out of user"),
        ("{% for %}", "refuses user"),
    ],
)
def test_n10_a_template_that_takes_no_question_is_one_sentence(template, sentence):
    tokenizer = make_tokenizer(LLAMA3)
    tokenizer.chat_template = template
    with pytest.raises(UserError) as error:
        render_prompt(tokenizer, "", USER)
    assert sentence in str(error.value) and "\n" not in str(error.value)


DATED = {
    "llama 3.1": (
        "{% if strftime_now is defined %}{% set day = strftime_now('%d %b %Y') %}{% endif %}{{ day }} ",
        "26 Jul 2024",
    ),
    "granite": ("{{ 'Today is ' + strftime_now('%B %d, %Y') }}.", "Today is July 26, 2024."),
    "gpt-oss": ("{% macro top() %}{{ strftime_now('%Y-%m-%d') }}{% endmacro %}\n{{ top() }} ", "2024-07-26"),
    "weekday and hour": ("{{ strftime_now('%A %H:%M') }} ", "Friday 00:00"),
    "no leading zero": ("{{ strftime_now('%-d/%-m/%y') }} ", "26/7/24"),
}


@pytest.mark.parametrize(("opening", "written"), DATED.values(), ids=DATED.keys())
def test_n09_the_day_of_a_prompt_is_always_the_same(opening, written):
    tokenizer = make_tokenizer(LLAMA3)
    tokenizer.chat_template = opening + LLAMA3
    prompt = render_prompt(tokenizer, SYSTEM, USER)
    assert written in tokenizer.decode(prompt)
    row, n_prompt = render_row(tokenizer, SYSTEM, USER, ASSISTANT)
    assert row[:n_prompt] == prompt


IDS = [1, 2, 3]


@pytest.mark.parametrize(
    "prompts",
    [[USER, USER], (USER,), [MESSAGES], [IDS], [IDS, [4]], [torch.tensor(IDS)], torch.tensor([IDS, IDS]), []],
    ids=str,
)
def test_n18_a_list_of_prompts_is_taken(prompts):
    assert len(as_prompts(prompts)) == len(prompts)
    assert as_prompts([torch.tensor(IDS)]) == [IDS]


@pytest.mark.parametrize(
    ("prompts", "sentence"),
    [
        (USER, "prompts is a str; give a list of prompts"),
        (b"text", "prompts is a bytes"),
        (MESSAGES[1], "prompts is a dict"),
        (MESSAGES, "prompts is a flat list of one conversation"),
        (IDS, "prompts is a flat list of token ids"),
        (torch.tensor(IDS), "prompts is a flat list of token ids"),
        (7, "prompts is a int"),
        (None, "prompts is a NoneType"),
        ([USER, None], "prompts: number 1 is neither"),
        ([[IDS, IDS]], "prompts: number 0 is neither"),
        ([torch.tensor([1.5])], "prompts: number 0 is neither"),
        ([[{"role": "user"}]], "prompts: number 0 is neither"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_n18_one_prompt_and_other_things_are_one_sentence(prompts, sentence):
    with pytest.raises(UserError) as error:
        as_prompts(prompts)
    assert sentence in str(error.value)
