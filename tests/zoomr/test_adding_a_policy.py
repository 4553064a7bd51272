"""The page on adding a policy is executed as it stands."""

import re
from pathlib import Path

import torch

import zoomr.policies
from tests.zoomr.tiny import prompt_of, story
from zoomr import Full, teacher_forced


def test_the_example_runs_in_every_mode(model, tokenizer):
    page = (Path(zoomr.policies.__file__).parent / "README.md").read_text()
    names = {"__name__": "example"}
    [code] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(code, names)
    prompts, stories = [prompt_of(0, 5), prompt_of(1, 9)], [story(0), story(1)]
    full = teacher_forced(model, tokenizer, prompts, stories, policy=Full(), keep_logits=True)
    for policy in (
        names["OldestZoom"](c=1, window=6),
        names["EveryOther"](budget=20, keep_prompt=True),
        names["EveryOtherInFourBits"](budget=12),
        names["NearestKeys"](n=6),
    ):
        masked, gathered = (
            teacher_forced(model, tokenizer, prompts, stories, policy=policy, mode=mode, keep_logits=True)
            for mode in ("mask", "gather")
        )
        for one, other, whole in zip(masked, gathered, full, strict=True):
            torch.testing.assert_close(one.logits, other.logits, atol=1e-5, rtol=0)
            assert (one.logits - whole.logits).abs().max() > 1e-2
        if not isinstance(policy, names["NearestKeys"] | names["EveryOtherInFourBits"]):
            assert gathered[0].stats.active_tokens_peak < full[0].stats.active_tokens_peak
