"""Public bug reports as tests (ids of the list they come from): transformers, caches and devices around us."""

import subprocess
import sys

import pytest
import torch
from transformers import DynamicCache

from tests.zoomr.tiny import BEGIN, BOUNDARIES, CLOSE, make_model, prompt_of, story
from zoomr import ZoomR, compat, decode
from zoomr.batch import Batch
from zoomr.errors import UserError
from zoomr.forcing import Forcing
from zoomr.plan import Plan
from zoomr.rows import Request

PROMPT, STORY = prompt_of(0, 9), story(2, paragraphs=4)


def test_k07_k08_a_cache_that_is_not_empty_is_refused(model):
    cache = DynamicCache()
    with torch.inference_mode():
        model(torch.tensor([PROMPT]), **{compat.CACHE_KWARG: cache}, use_cache=True)
    bound = {"custom_generate": decode, "policy": ZoomR(), "boundaries": [], "delimiters": (BEGIN, CLOSE)}
    ids = torch.tensor([[*PROMPT, 20]])
    with pytest.raises(UserError, match="past_key_values"):
        model.generate(ids, **{compat.CACHE_KWARG: cache}, max_new_tokens=3, **bound)


def test_k09_an_unsupported_transformers_gives_a_readable_message():
    code = "import transformers; transformers.__version__ = '4.57.0'; import zoomr.compat"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "zoomr needs transformers >=5.20,<5.25; installed is 4.57.0" in done.stderr


def test_k21_offloading_runs_without_a_gpu(model, tokenizer):
    """Two layers' buffers are on the device, whatever the number of layers; the rest is on the host."""
    deep = make_model(layers=5)
    plan = Plan(ZoomR(window=8), BOUNDARIES, frozenset(), (BEGIN, CLOSE), residency="layerwise")
    batch = Batch(deep, plan, Forcing([STORY]), 1)
    batch.admit([Request(0, 0, 0, PROMPT, len(STORY), True)])
    while len(batch.rows[0].tokens) < 40:
        batch.step()
    held = batch.store.tensors()
    layer_bytes = batch.store.kv[0].numel() * 4
    assert sum(tensor.untyped_storage().nbytes() for tensor in held["device"]) == 2 * layer_bytes
    assert batch.store.kv.numel() * 4 == 5 * layer_bytes and batch.rows[0].moved_bytes > 0


def test_k25_without_cuda_the_gpu_script_says_so():
    done = subprocess.run([sys.executable, "-m", "zoomr.bench_gpu"], capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "needs a CUDA device" in done.stderr
