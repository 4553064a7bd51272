"""An OpenAI-compatible server on a real socket that does what a test's script says for every call."""

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PARAGRAPH = re.compile(r"<paragraph>\n(.*?)\n</paragraph>", re.S)


@dataclass(frozen=True)
class Call:
    """One request: the paragraph in it, which attempt for that paragraph it is (from 0), and what was sent."""

    paragraph: str
    attempt: int
    body: dict[str, Any]
    headers: dict[str, str]
    time: float


@dataclass(frozen=True)
class Answer:
    """What the server sends. `silent` keeps the socket open without a word, `drop` closes it."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    silent: bool = False
    drop: bool = False


def completion(text: Any, finish: str | None = "stop", tokens: int = 5, **message: Any) -> Answer:
    """A chat completion with the given content."""
    return Answer(
        body={
            "id": "x",
            "object": "chat.completion",
            "created": 0,
            "model": "scripted-model-v1",
            "choices": [
                {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text, **message}}
            ],
            "usage": {"prompt_tokens": 100, "completion_tokens": tokens, "total_tokens": 100 + tokens},
        }
    )


def echo(call: Call) -> Answer:
    """The rule of a good teacher: the first words of the paragraph."""
    return completion("note on " + " ".join(call.paragraph.split()[:3]))


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def __init__(self, script: Callable[[Call], Answer]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script = script
        self.calls: list[Call] = []
        self.in_flight = self.most_in_flight = 0
        self.closing = threading.Event()
        self._attempts: Counter[str] = Counter()
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def record(self, body: dict[str, Any], headers: dict[str, str]) -> Call:
        found = PARAGRAPH.search(body["messages"][-1]["content"])
        paragraph = found.group(1) if found else ""
        with self._lock:
            call = Call(paragraph, self._attempts[paragraph], body, headers, time.monotonic())
            self._attempts[paragraph] += 1
            self.calls.append(call)
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
        return call

    def done(self) -> None:
        with self._lock:
            self.in_flight -= 1

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is part of the tests."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server

    def log_message(self, *arguments: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        call = self.server.record(body, {name.lower(): value for name, value in self.headers.items()})
        try:
            answer = self.server.script(call)
            if answer.silent:
                self.server.closing.wait()
            if answer.silent or answer.drop:
                self.close_connection = True
                return
            if answer.delay:
                time.sleep(answer.delay)
            payload = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
            self.send_response(answer.status)
            for name, value in {"Content-Type": "application/json", **answer.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(payload.encode())))
            self.end_headers()
            self.wfile.write(payload.encode())
        finally:
            self.server.done()


@contextmanager
def serve(script: Callable[[Call], Answer] = echo) -> Iterator[Server]:
    """Run a scripted server for the duration of a test."""
    server = Server(script)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        server.shutdown()
        server.server_close()
