"""A batch that a test takes step by step."""

from tests.zoomr.tiny import BEGIN, BOUNDARIES, CLOSE
from zoomr.batch import Batch
from zoomr.forcing import Forcing
from zoomr.plan import Plan
from zoomr.rows import Request


def decoding(model, policy, prompts, targets, mode="gather"):
    """A batch in the middle of teacher forcing, and its forcing."""
    forcing = Forcing(targets, keep_logits=True)
    plan = Plan(policy, BOUNDARIES, frozenset(), (BEGIN, CLOSE), mode)
    batch = Batch(model, plan, forcing, len(prompts))
    batch.admit([Request(i, 0, i, prompt, len(targets[i]), True) for i, prompt in enumerate(prompts)])
    return batch, forcing
