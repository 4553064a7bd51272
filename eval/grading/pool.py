"""Grading processes side by side, behind one ordered map."""

import json
import queue
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Verdict:
    """What the symbolic grader says: equal, not equal, or None with the reason."""

    equal: bool | None
    reason: str = ""


class SymbolicPool:
    """Compares pairs of expressions in child processes.

    Parameters
    ----------
    workers : int
        Processes.
    seconds : int
        Processor time that one pair may use, from 1.
    mebibytes : int
        Address space that one pair may use.
    """

    def __init__(self, workers: int, seconds: int, mebibytes: int) -> None:
        command = [sys.executable, "-m", "eval.grading.worker", str(seconds), str(mebibytes)]
        self._idle: queue.Queue[subprocess.Popen[str]] = queue.Queue()
        self._all = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
            for _ in range(workers)
        ]
        for process in self._all:
            self._idle.put(process)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._all:
            process.kill()
            process.communicate()

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
        with ThreadPoolExecutor(len(self._all)) as threads:
            yield from threads.map(self._ask, pairs)

    def _ask(self, pair: tuple[str, str]) -> Verdict:
        process = self._idle.get()
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps({"gold": pair[0], "answer": pair[1]}) + "\n")
        process.stdin.flush()
        reply = process.stdout.readline()
        self._idle.put(process)
        if not reply:
            raise RuntimeError("a grading process ended; its message is above")
        return Verdict(**json.loads(reply))
