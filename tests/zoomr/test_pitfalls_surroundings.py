"""Public bug reports as tests (ids of the list they come from): transformers, caches and devices around us."""

import subprocess
import sys

import pytest
import torch
from transformers import DynamicCache

from tests.zoomr.decoding import decoding
from tests.zoomr.tiny import BEGIN, CLOSE, make_model, prompt_of, story
from zoomr import ZoomR, decode
from zoomr.errors import UserError

PROMPT, STORY = prompt_of(0, 9), story(2, paragraphs=4)


def test_k07_k08_a_cache_that_is_not_empty_is_refused(model):
    cache = DynamicCache()
    with torch.inference_mode():
        cache.update(*torch.zeros(2, 1, 2, 9, 8), 0)
    bound = {"custom_generate": decode, "policy": ZoomR(), "boundaries": [], "delimiters": (BEGIN, CLOSE)}
    ids = torch.tensor([[*PROMPT, 20]])
    with pytest.raises(UserError, match="past_key_values"):
        model.generate(ids, past_key_values=cache, max_new_tokens=3, **bound)


def test_k09_an_unsupported_transformers_gives_a_readable_message():
    code = "import transformers; transformers.__version__ = '4.57.0'; import zoomr.compat"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "zoomr needs transformers >=5.20,<5.25; installed is 4.57.0" in done.stderr


def test_k21_offloading_runs_without_a_gpu(model, tokenizer):
    """Two layers' buffers are on the device, whatever the number of layers; the rest is on the host."""
    deep = make_model(layers=5)
    batch, _ = decoding(deep, ZoomR(window=8, lower="layerwise"), [PROMPT], [STORY])
    while len(batch.rows[0].tokens) < 40:
        batch.step()
    tiers = batch.memory.tiers
    held, layer_bytes = tiers.tensors(), sum(part[0].numel() * 4 for part in tiers.kv)
    assert sum(tensor.untyped_storage().nbytes() for tensor in held["device"]) == 2 * layer_bytes
    assert sum(part.numel() * 4 for part in tiers.kv) == 5 * layer_bytes and batch.rows[0].moved_bytes > 0
