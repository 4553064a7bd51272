"""A real trace through a real language model: the full cache under a mask, and real eviction and recall."""

from pathlib import Path

import pytest

from data_gen.assemble import insert_summaries
from data_gen.conversations import read_conversation
from data_gen.lengths import approximate_tokens
from data_gen.segmentation import Segmentation
from pipeline import read_rows

ROOT = Path(__file__).parents[2]
MODEL = ROOT / "runs" / "models" / "smollm2-135m-instruct"
TRACES = ROOT.parent / "shared" / "data" / "reasoning_traces_sample.jsonl"
SMALL = Segmentation(merge=True, minimum=25, target=35, maximum=50)

pytestmark = [
    pytest.mark.skipif(not MODEL.exists(), reason=f"needs python -m pipeline.smollm2 {MODEL}"),
    pytest.mark.skipif(not TRACES.exists(), reason=f"needs {TRACES}"),
]


def test_mask_and_gather_agree_on_a_real_trace():
    """Its paragraphs are cut small and summarised by their first words, so that few tokens hold many of them."""
    from zoomr import ZoomR, load, teacher_forced
    from zoomr.comparison import Reference
    from zoomr.prompts import render_row

    model, tokenizer = load(MODEL)
    trace = read_conversation(next(iter(read_rows(TRACES))), 0, SMALL, approximate_tokens)
    summaries = {index: " ".join(text.split()[:6]) for index, text in enumerate(trace.paragraphs)}
    ids, prompt = render_row(tokenizer, "", trace.user, insert_summaries(trace, summaries))
    start, given, policy = ids[:prompt], ids[prompt : prompt + 220], ZoomR(window=24, c=1, k=1)
    (masked,) = Reference(model, tokenizer, start, given).compare([policy])
    (gathered,) = teacher_forced(model, tokenizer, [start], [given], policy=policy, mode="gather")
    assert masked.stats.summaries >= 4 and masked.stats.refreshes >= 4
    assert gathered.stats.active_tokens_mean == pytest.approx(masked.stats.active_tokens_mean)
    assert abs(masked.delta_nll) > 1e-2  # what is dropped matters, so that agreement means something
    assert -float(gathered.log_probs.double().mean()) == pytest.approx(masked.nll, abs=1e-3)
