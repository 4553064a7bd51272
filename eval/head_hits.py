"""Which heads vote for the paragraph that a look-up needs."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor

from zoomr import ZoomR
from zoomr.summaries.state import SummaryView
from zoomr.summaries.votes import Votes


@dataclass(frozen=True, kw_only=True)
class WatchedZoomR(ZoomR):
    """ZoomR that shows what its heads see to a tally before they vote."""

    tally: "HeadHits"

    def vote(self, view: SummaryView) -> Votes:
        """See `ZoomR.vote`."""
        self.tally.count(view)
        return super().vote(view)


@dataclass
class HeadHits:
    """Counts, for each layer and query head, how often its first choice is the summary that the look-up needs.

    Attributes
    ----------
    needs : mapping
        The needed paragraph of each look-up, by (prompt, absolute position of its name).
    hits : (L, Hq) float64 or None
    look_ups : int
    """

    needs: Mapping[tuple[int, int], int]
    hits: Tensor | None = field(default=None)
    look_ups: int = 0

    def count(self, view: SummaryView) -> None:
        """Take the first choices of the rows that look something up."""
        assert view.queries is not None and view.means is not None
        layers, _, heads, width = view.queries.shape
        for row, clock in enumerate(view.clocks):
            key = clock.number, clock.position
            if key not in self.needs:
                continue
            queries = view.queries[:, row].float().reshape(layers, view.means.shape[2], -1, width)
            scores = queries @ view.means[:, row, :, : clock.tracker.finished].float().transpose(-1, -2)
            right = (scores.argmax(-1) == self.needs[key]).reshape(layers, heads).double().cpu()
            self.hits = right if self.hits is None else self.hits + right
            self.look_ups += 1

    def shares(self) -> list[list[float]] | None:
        """Share of hits by layer and query head; None where nothing was counted."""
        return None if self.hits is None else (self.hits / self.look_ups).tolist()
