"""A grading process: reads pairs as JSON lines, answers each from a forked child with hard limits on time and memory.

The child is the only place where expressions of a model are evaluated. Alarms inside one process do not bound it: C
code does not return to the interpreter to see them, and they need the main thread. Killing a child always works.
"""

import json
import logging
import os
import resource
import select
import signal
import sys
from typing import Any

from eval.grading.symbolic import symbolic_verdict

# Kinds of expressions whose modules and grammar tables are loaded once and then shared by all children.
WARM_UP = (
    ("\\frac{1}{2}", "0.5"),
    ("x+1", "1+x"),
    ("y=2x", "y=3x"),
    ("(1,2]", "[1,2]"),
    ("\\{1,2\\}", "2,1"),
    ("x<1", "(-\\infty,1)"),
    ("\\begin{pmatrix}1\\\\2\\end{pmatrix}", "\\begin{pmatrix}1\\\\3\\end{pmatrix}"),
    ("\\sqrt{2}+\\sin x", "\\sin x+\\pi"),
)
# The limit is on processor time, so that a busy machine gives the same verdicts; the wall clock catches sleepers.
WALL_FACTOR = 4


def main() -> None:
    """Serve until standard input closes. Arguments: seconds and mebibytes a pair may cost."""
    seconds, mebibytes = int(sys.argv[1]), int(sys.argv[2])
    logging.disable(logging.CRITICAL)
    for pair in WARM_UP:
        symbolic_verdict(*pair)
    for line in sys.stdin:
        pair = json.loads(line)
        print(json.dumps(_in_child(pair["gold"], pair["answer"], seconds, mebibytes)), flush=True)


def _in_child(gold: str, answer: str, seconds: int, mebibytes: int) -> dict[str, Any]:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        resource.setrlimit(resource.RLIMIT_AS, (mebibytes << 20, mebibytes << 20))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        os.write(writer, json.dumps(_verdict(gold, answer)).encode())
        os._exit(0)
    os.close(writer)
    ready, _, _ = select.select([reader], [], [], WALL_FACTOR * seconds)
    reply = os.read(reader, 1 << 16) if ready else b""
    os.close(reader)
    if not ready:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if reply:
        return dict(json.loads(reply))
    late = not ready or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU)
    return {"equal": None, "reason": f"time limit of {seconds} s" if late else "child process died"}


def _verdict(gold: str, answer: str) -> dict[str, Any]:
    try:
        equal = symbolic_verdict(gold, answer)
    except MemoryError:
        return {"equal": None, "reason": "memory limit"}
    except Exception as error:
        return {"equal": None, "reason": f"{type(error).__name__}: {error}"[:300]}
    return {"equal": equal, "reason": "" if equal is not None else "cannot be read as an expression"}


if __name__ == "__main__":
    main()
