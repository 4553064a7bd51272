"""What a rank is shown of the last queries, in a batch whose rows differ."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from tests.zoomr.decoding import decoding
from tests.zoomr.tiny import prompt_of, story
from zoomr.policies import Keeps, Records, State


@dataclass(frozen=True, kw_only=True)
class Looks(Keeps):
    history: int = 3  # type: ignore[misc]
    records: ClassVar[Records] = Records.HISTORY

    def start(self, site):
        return Looking()


class Looking(State):
    def __init__(self):
        self.seen = {}

    def due(self, clock):
        return clock.since > 0  # there are no queries yet when the prompt is in

    def decide(self, view):
        for row, clock in zip(view.rows, view.clocks, strict=True):
            history = view.slots([row], slice(None)).history[:, 0]
            self.seen.setdefault(clock.number, []).append((view.queries([row])[:, 0], history))
        return ()


def test_the_last_queries_come_oldest_first(model):
    batch, _ = decoding(model, Looks(), [prompt_of(0, 9), prompt_of(1, 2)], [story(0), story(1)])
    for _ in range(12):
        batch.step()
    for seen in batch.memory.state.seen.values():
        assert len(seen) == 12
        newest = torch.stack([query for query, _ in seen], dim=1)
        for step in range(2, 12):
            torch.testing.assert_close(seen[step][1], newest[:, step - 2 : step + 1], atol=0, rtol=0)
