"""The arithmetic, against sets and loops."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from zoomr import SumR
from zoomr.meter import memory_saving
from zoomr.rotary import rotate, unrotated_mean
from zoomr.selection import active_positions, label_positions, mean_key, top_segments

FAR = torch.iinfo(torch.int64).max
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
def test_active_positions_are_the_union_of_the_sets(data):
    """Rows of different length and number of segments in one call; windows of 0 tokens, empty segments, no segment."""
    rows = []
    for _ in range(data.draw(st.integers(1, 3))):
        lengths = data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=8))
        edges = [sum(lengths[: i + 1]) for i in range(len(lengths))]
        last = max(edges[-1] + data.draw(st.integers(-1, 5)), edges[-1] - 1, 0)
        finished = (len(edges) - 1) // 2
        choice = [data.draw(st.sampled_from(["zoomed", "shown", "absent"])) for _ in range(finished)]
        rows.append((edges, last, finished, choice))
    window, keep_open = data.draw(st.integers(0, 7)), data.draw(st.booleans())
    width, summaries = max(len(row[0]) for row in rows), max(row[2] for row in rows)
    edges = torch.tensor([row[0] + [FAR] * (width - len(row[0])) for row in rows])

    def picked(kind):
        chosen = [[i < row[2] and row[3][i] == kind for i in range(summaries)] for row in rows]
        return torch.tensor(chosen, dtype=torch.bool).view(len(rows), summaries)

    last = torch.tensor([row[1] for row in rows])
    labels = label_positions(edges, int(last.max()) + 1)
    finished = torch.tensor([row[2] for row in rows])
    found = active_positions(labels, last, finished, picked("zoomed"), picked("shown"), window, keep_open)
    for place, (edge, newest, number, choice) in enumerate(rows):
        expected = set(range(edge[0])) | set(range(newest - window + 1, newest + 1))
        for i in range(number):
            if choice[i] == "zoomed":
                expected |= set(range(edge[2 * i], edge[2 * i + 1]))
            elif choice[i] == "shown":
                expected |= set(range(edge[2 * i + 1], edge[2 * i + 2]))
        if keep_open:
            expected |= set(range(edge[2 * number], newest + 1))
        assert found[place].nonzero().flatten().tolist() == sorted(p for p in expected if 0 <= p <= newest)


def test_mean_keys_accumulate_in_fp32():
    keys = torch.full((1, 1, 3000, 2), 1.01, dtype=torch.bfloat16)
    assert torch.allclose(mean_key(keys), keys[0, 0, 0].float(), rtol=1e-6)


def test_unrotated_means_are_means_of_bare_keys_at_the_middle(model):
    rotary = model.get_decoder().rotary_emb
    bare, positions = torch.randn(2, 2, 5, 8), torch.arange(40, 45)
    rotated = rotate(bare, positions, rotary)
    expected = rotate(bare.mean(2, keepdim=True), torch.tensor([42]), rotary)[:, :, 0]
    torch.testing.assert_close(unrotated_mean(rotated, positions, rotary), expected, atol=1e-5, rtol=1e-5)


def test_the_memory_model_gives_the_papers_numbers():
    shared = {"prompt": 512, "window": 512, "c": 2, "paragraph": 250, "summary": 20}
    assert round(memory_saving(generated=16384, candidates=80, **shared), 2) == 5.48
    assert round(memory_saving(generated=32768, candidates=160, **shared), 2) in (7.10, 7.11)
    assert SumR().window == shared["window"]
