"""The tracker against its definition, on any stream of tokens."""

from hypothesis import given
from hypothesis import strategies as st

from tests.zoomr.tiny import BEGIN, BOUNDARIES, CLOSE
from zoomr.summaries.segments import SegmentTracker, boundary_table, delimiter_ids


def follow(tokens, prompt=3, max_summary=64):
    tracker = SegmentTracker(prompt, BEGIN, CLOSE, max_summary)
    closed = [position for position, token in enumerate(tokens, prompt) if tracker.push(token, position)]
    return tracker, closed


def test_paragraphs_and_summaries_of_a_plain_trace():
    tokens = [20, 21, BEGIN, 30, 31, CLOSE, 22, BEGIN, 32, CLOSE, 23]
    tracker, closed = follow(tokens)
    assert tracker.edges == [3, 5, 9, 10, 13]
    assert tracker.inner == [(6, 8), (11, 12)]
    assert closed == [8, 12]
    assert tracker.unbalanced == 0


@given(st.lists(st.sampled_from([BEGIN, CLOSE, 20, 21]), max_size=60))
def test_any_stream_leaves_ordered_edges_and_closed_segments(tokens):
    tracker, closed = follow(tokens, max_summary=5)
    edges = tracker.edges
    assert edges == sorted(edges)
    assert len(closed) == tracker.finished == (len(edges) - 1) // 2
    for index, (start, stop) in enumerate(tracker.inner):
        begin, end = edges[2 * index + 1], edges[2 * index + 2]
        assert begin <= start < stop <= end
        assert stop - start <= 5


def test_stray_repeated_and_missing_delimiters_are_counted():
    tracker, closed = follow([CLOSE, 20, BEGIN, BEGIN, 30, CLOSE, CLOSE, BEGIN, 31])
    assert tracker.finished == 1
    assert [tracker.at_end(3 + 9)[0] for _ in range(2)] == [4, 4]


def test_a_summary_without_an_end_is_closed_by_force():
    tracker, closed = follow([20, BEGIN, *[30] * 8], max_summary=4)
    assert closed == [3 + 1 + 4]
    assert tracker.inner == [(5, 9)]
    assert tracker.unbalanced == 1
    tracker, _ = follow([20, BEGIN, *[30] * 8, CLOSE, 20, CLOSE], max_summary=4)
    assert tracker.unbalanced == 2  # its late end is the same fault, the next one is another


def test_an_empty_summary_takes_its_key_from_the_delimiters():
    tracker, _ = follow([20, BEGIN, CLOSE])
    assert tracker.inner == [(4, 6)]


def test_a_model_without_delimiters_has_no_summaries():
    tracker = SegmentTracker(0, None, None)
    assert not any(tracker.push(token, position) for position, token in enumerate([4, 5, 20]))


def test_boundaries_are_found_by_decoding_each_token(tokenizer):
    assert boundary_table(tokenizer) == BOUNDARIES
    assert boundary_table(tokenizer, endings=("w5",), breaks=()) == {
        i for i in range(len(tokenizer)) if tokenizer.decode([i]).endswith("w5")
    }


def test_delimiters_must_be_single_tokens(tokenizer):
    assert delimiter_ids(tokenizer) == (BEGIN, CLOSE)
