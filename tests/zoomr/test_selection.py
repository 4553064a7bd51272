"""The arithmetic, against sets and loops."""

from types import SimpleNamespace

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from zoomr import SumR
from zoomr.policies.base import count_kinds, label_spans
from zoomr.summaries.votes import mean_key, top_segments

small = st.integers(0, 3)


@given(st.lists(st.tuples(small, small, st.booleans()), min_size=1, max_size=8), st.integers(0, 5))
@settings(deadline=None)
def test_top_segments_are_those_of_a_sorted_list(entries, c):
    """Many ties: by rank, then by the tie-break, then the more recent."""
    ranks, ties, eligible = zip(*entries, strict=True)
    order = sorted((i for i in range(len(entries)) if eligible[i]), key=lambda i: (ranks[i], ties[i], i), reverse=True)
    keys = torch.tensor([[ranks], [ties]], dtype=torch.float64)
    found = top_segments(keys[0], keys[1], torch.tensor([eligible]), c)
    assert found[0].nonzero().flatten().tolist() == sorted(order[:c])


@given(st.data())
@settings(deadline=None)
def test_spans_are_the_union_of_the_sets(data):
    """Windows and tails of any size, empty segments, no segment."""
    lengths = data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=8))
    edges = [sum(lengths[: i + 1]) for i in range(len(lengths))]
    newest = max(edges[-1] + data.draw(st.integers(-1, 5)), edges[-1] - 1, 0)
    finished = (len(edges) - 1) // 2
    choice = [data.draw(st.sampled_from(["zoomed", "shown", "absent"])) for _ in range(finished)]
    window, tail = data.draw(st.integers(1, 7)), data.draw(st.integers(0, 3))
    policy = SumR(window=window, tail=tail, keep_open=data.draw(st.booleans()))
    tracker = SimpleNamespace(edges=edges, finished=finished)
    clock = SimpleNamespace(tracker=tracker, prompt=edges[0], position=newest)
    picked = [[i for i in range(finished) if choice[i] == kind] for kind in ("zoomed", "shown")]
    spans = policy.spans(clock, *picked)
    expected = set(range(edges[0])) | set(range(newest - window + 1, newest + 1))
    for i in picked[0]:
        expected |= set(range(edges[2 * i], edges[2 * i + 1]))
    for i in picked[1]:
        expected |= set(range(edges[2 * i + 1], edges[2 * i + 2]))
        expected |= set(list(range(edges[2 * i], edges[2 * i + 1]))[-tail:]) if tail else set()
    if policy.keep_open:
        expected |= set(range(edges[2 * finished], newest + 1))
    expected = {position for position in expected if 0 <= position <= newest}
    assert (label_spans(spans, newest + 1) >= 0).nonzero().flatten().tolist() == sorted(expected)
    assert sum(count_kinds(spans, newest + 1)) == len(expected)


def test_mean_keys_accumulate_in_fp32():
    keys = torch.full((1, 1, 3000, 2), 1.01, dtype=torch.bfloat16)
    assert torch.allclose(mean_key(keys), keys[0, 0, 0].float(), rtol=1e-6)
