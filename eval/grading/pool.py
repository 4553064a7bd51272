"""Pairs of expressions compared in worker processes, each pair within hard limits on processor time and memory.

The workers are the only place where expressions of a model are evaluated. Alarms inside one process do not bound it: C
code does not return to the interpreter to see them. Killing a process always works.
"""

import logging
import resource
import signal
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from types import TracebackType
from typing import Self

from pebble import ProcessExpired, ProcessPool

# The limit is on processor time, so that a busy machine gives the same verdicts; the wall clock catches sleepers.
WALL_FACTOR = 4
# Kinds of expressions whose modules and grammar tables are loaded once and then shared by all workers.
WARM_UP = (
    ("\\frac{1}{2}", "\\sqrt{2}+\\sin x"),
    ("x+1", "1+x"),
    ("y=2x", "y=3x"),
    ("(1,2]", "[1,2]"),
    ("x<1", "(-\\infty,1)"),
    ("\\begin{pmatrix}1\\\\2\\end{pmatrix}", "\\begin{pmatrix}1\\\\3\\end{pmatrix}"),
)


@dataclass(frozen=True)
class Verdict:
    """What the symbolic grader says: equal, not equal, or None with the reason."""

    equal: bool | None
    reason: str = ""


class SymbolicPool:
    """Compares pairs of expressions in worker processes.

    Workers are forked from this process once the libraries are loaded, so that the one that follows a killed worker
    starts at once.

    Parameters
    ----------
    workers : int
        Processes.
    seconds : int
        Processor time that one pair may use, from 1.
    mebibytes : int
        Address space that a worker may use beyond what it starts with.
    """

    def __init__(self, workers: int, seconds: int, mebibytes: int) -> None:
        from eval.grading.symbolic import math_verdict

        for pair in WARM_UP:
            math_verdict(*pair)
        self.seconds = seconds
        self._pool = ProcessPool(workers, initializer=_limit_memory, initargs=[mebibytes], context=get_context("fork"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.stop()
        self._pool.join()

    def verdicts(self, pairs: Iterable[tuple[str, str]]) -> Iterator[Verdict]:
        """Compare pairs, in order.

        Parameters
        ----------
        pairs : iterable of (str, str)
            Gold and answer.

        Yields
        ------
        Verdict
            One for each pair.
        """
        asked = [
            self._pool.schedule(_verdict, args=[*pair, self.seconds], timeout=WALL_FACTOR * self.seconds)
            for pair in pairs
        ]
        for future in asked:
            yield self._outcome(future)

    def _outcome(self, future: "Future[Verdict]") -> Verdict:
        try:
            return future.result()
        except TimeoutError:
            return Verdict(None, f"time limit of {self.seconds} s")
        except ProcessExpired as error:
            late = error.exitcode == -signal.SIGPROF
            return Verdict(None, f"time limit of {self.seconds} s" if late else "child process died")


def _limit_memory(mebibytes: int) -> None:
    """Run once in a new worker."""
    logging.disable(logging.CRITICAL)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + (mebibytes << 20)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _verdict(gold: str, answer: str, seconds: int) -> Verdict:
    """Run in a worker for each pair. The kernel ends the worker when the pair has used its processor time."""
    from eval.grading.symbolic import math_verdict

    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        equal = math_verdict(gold, answer)
    except MemoryError:
        return Verdict(None, "memory limit")
    except Exception as error:
        return Verdict(None, f"{type(error).__name__}: {error}"[:300])
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return Verdict(equal, "" if equal is not None else "cannot be read as an expression")
