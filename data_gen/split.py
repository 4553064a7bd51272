"""Train or validation: decided by the problem, so that no problem is in both."""

import hashlib

from data_gen.conversations import Conversation
from data_gen.decontamination import normalise, problem_text
from data_gen.records import Skip


class Split:
    """Assigns traces to splits.

    Parameters
    ----------
    validation_share : float
        Share of problems for validation, where the source has no split of its own.
    """

    def __init__(self, validation_share: float) -> None:
        self.validation_share = validation_share
        self._seen: dict[bytes, str] = {}

    def __call__(self, trace: Conversation) -> str:
        """Return "train" or "validation".

        Raises
        ------
        Skip
            If the source puts the same problem into both.
        """
        digest = hashlib.sha256(normalise(problem_text(trace.user)).encode()).digest()[:8]
        by_problem = "validation" if int.from_bytes(digest) / 2**64 < self.validation_share else "train"
        split = trace.split or by_problem
        if self._seen.setdefault(digest, split) != split:
            raise Skip("problem in both splits")
        return split
