"""A batch that a test takes step by step."""

from tests.zoomr.tiny import BEGIN, BOUNDARIES, CLOSE
from zoomr.attention import NAME
from zoomr.forcing import Forcing
from zoomr.rows import Request
from zoomr.runner import Decoding, Runner


def decoding(model, policy, prompts, targets, mode="gather"):
    """A batch in the middle of teacher forcing, and its forcing; the model stays switched."""
    model.set_attn_implementation(NAME)
    forcing = Forcing(targets, keep_logits=True)
    runner = Runner(model, Decoding(policy, BOUNDARIES, frozenset(), (BEGIN, CLOSE), mode), forcing, len(prompts))
    runner.admit([Request(i, 0, i, prompt, len(targets[i]), True) for i, prompt in enumerate(prompts)])
    return runner, forcing
