"""A teacher that the stage starts itself: a command that listens on a free loopback port and dies with the stage."""

import ctypes
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from data_gen.teacher.settings import Teacher
from zoomr.errors import UserError

SET_PARENT_DEATH_SIGNAL = 1  # prctl(2)


@contextmanager
def endpoint(teacher: Teacher, log: Path, patience: float = 600.0) -> Iterator[str]:
    """Give the teacher's base URL; start `teacher.serve` first, and stop it afterwards, where no URL is configured.

    Parameters
    ----------
    teacher : Teacher
        The settings.
    log : Path
        File for the server's output.
    patience : float
        Seconds that the server may take to listen; one that has ended is noticed at once.

    Raises
    ------
    UserError
        If the server ends or does not listen in time.
    """
    if teacher.base_url is not None or teacher.serve is None:
        yield str(teacher.base_url)
        return
    port = free_port()
    command = [part.format(port=port, python=sys.executable, model=teacher.model) for part in teacher.serve]
    with open(log, "ab") as output:
        try:
            server = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, preexec_fn=_die_with_parent
            )
        except FileNotFoundError as error:
            raise UserError(f"teacher.serve: the command {command[0]} is not installed.") from error
    try:
        _wait_until_listening(server, port, log, patience)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        try:
            server.wait(timeout=10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def free_port() -> int:
    """Return a loopback port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _die_with_parent() -> None:
    if sys.platform == "linux":
        # A killed stage cannot stop its server, so the kernel does.
        ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def _wait_until_listening(server: subprocess.Popen[bytes], port: int, log: Path, patience: float) -> None:
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise UserError(f"teacher.serve ended with status {server.returncode}: see {log}.")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise UserError(f"teacher.serve did not listen on port {port} within {patience:.0f} s: see {log}.")
