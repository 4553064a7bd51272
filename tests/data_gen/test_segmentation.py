"""Segmentation: nothing lost, lengths in range, no cut inside mathematics, code or a table."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_gen.lengths import approximate_tokens
from data_gen.records import Skip, cut_at_thought
from data_gen.segmentation import BLANK_LINES, Segmentation, cut
from pipeline import read_rows

RAW = Segmentation(merge=False, minimum=120, target=225, maximum=512)
MERGED = Segmentation(merge=True, minimum=120, target=225, maximum=512)
SMALL = Segmentation(merge=True, minimum=6, target=10, maximum=20)

BLOCKS = {
    "fence": "Code:\n\n```python\na = 1\n\nb = 2\n```\n\nDone.",
    "environment": "So\n\n\\begin{align*}\na &= b\n\n\\\\ c &= d\n\\end{align*}\n\nDone.",
    "display": "So\n\n\\[\na = b\n\n+ c\n\\]\n\nDone.",
    "dollars": "So\n\n$$\na = b\n\n+ c\n$$\n\nDone.",
    "table": "Rows:\n\n| a | b |\n\n|---|---|\n\n| 1 | 2 |\n\nDone.",
}


def count_words(text: str) -> int:
    return len(text.split())


def joined(parts):
    return "".join(p + s for p, s in zip(*parts, strict=True))


@given(st.text(alphabet="ab.|$`\\[]{} \n\t", max_size=200))
@settings(max_examples=300, deadline=None)
@pytest.mark.parametrize("segmentation", [RAW, SMALL])
def test_paragraphs_and_separators_are_the_text(segmentation, text):
    text = text.strip() or "x"
    paragraphs, separators = segmentation(text, count_words)
    assert joined((paragraphs, separators)) == text
    assert len(paragraphs) == len(separators)
    assert all(p.strip() for p in paragraphs)
    assert all(not s.strip() for s in separators)


@pytest.mark.parametrize("name", BLOCKS)
def test_no_cut_inside_a_block(name):
    pieces, _ = cut(BLOCKS[name], BLANK_LINES)
    assert len(pieces) == 3
    assert pieces[-1] == "Done."


@pytest.mark.parametrize("opening", ["```\ncode", "\\begin{align}", "\\[ x", "$$ x"])
def test_a_block_that_is_never_closed_protects_nothing(opening):
    assert len(cut(f"One.\n\n{opening}\n\nTwo.\n\nThree.", BLANK_LINES)[0]) == 4


def test_line_breaks_of_latex_do_not_open_display_mathematics():
    assert len(cut("a \\\\[4pt] b\n\nc\n\nd \\] e", BLANK_LINES)[0]) == 3


@pytest.mark.parametrize("seed", range(20))
def test_merged_lengths_lie_in_the_range(seed):
    rng = random.Random(seed)
    text = "\n\n".join(" ".join("w" * rng.randint(1, 9) for _ in range(rng.randint(1, 200))) for _ in range(60))
    paragraphs, _ = MERGED(text, count_words)
    lengths = [count_words(p) for p in paragraphs]
    assert all(length <= 512 for length in lengths)
    assert all(length >= 120 for length in lengths[:-1])


def test_merging_follows_the_target():
    text = "\n\n".join("w " * 49 + "w" for _ in range(40))
    lengths = [count_words(p) for p in MERGED(text, count_words)[0]]
    assert set(lengths[:-1]) <= {200, 250}


def test_a_long_piece_is_cut_at_lines_then_sentences():
    lines = "\n".join("word " * 29 + "end." for _ in range(10))
    sentences = " ".join("word " * 29 + "end." for _ in range(10))
    for text in (lines, sentences):
        paragraphs, separators = Segmentation(True, 10, 30, 60)(text, count_words)
        assert len(paragraphs) >= 5
        assert joined((paragraphs, separators)) == text


def test_real_traces_survive_and_keep_their_blocks(shared_data):
    merged = []
    for row in read_rows(shared_data / "reasoning_traces_sample.jsonl"):
        try:
            _, thought, _ = cut_at_thought(row["conversations"][1]["value"])
        except Skip:
            continue
        for segmentation in (RAW, MERGED):
            paragraphs, separators = segmentation(thought, approximate_tokens)
            assert joined((paragraphs, separators)) == thought
            for paragraph in paragraphs:
                assert paragraph.count("\\begin{") == paragraph.count("\\end{")
                assert paragraph.count("```") % 2 == 0
        merged += [approximate_tokens(p) for p in paragraphs]
    assert 150 < sum(merged) / len(merged) < 300
    assert sum(length > 512 for length in merged) / len(merged) < 0.01
