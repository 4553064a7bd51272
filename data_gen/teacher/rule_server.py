"""A teacher that answers by a world's rule over HTTP: `python -m data_gen.teacher.rule_server ledger-rule 8000`."""

import json
import re
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any

from data_gen.world import World
from data_gen.worlds import world_of

PARAGRAPH = re.compile(r"<paragraph>\n(.*?)\n</paragraph>", re.S)


class Server(ThreadingHTTPServer):
    """One thread a connection; takes a burst of connections at once."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, port: int, model: str) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.model = model
        self.world: World = world_of(model.removesuffix("-rule"), "model")
        self.numbers = count()


class Handler(BaseHTTPRequestHandler):
    """Answers /v1/models and /v1/chat/completions as OpenAI-compatible servers do."""

    server: Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """List the one model."""
        if self.path != "/v1/models":
            return self._error(404, f"no such path: {self.path}")
        model = {"id": self.server.model, "object": "model", "owned_by": "zoomr"}
        return self._send(200, {"object": "list", "data": [model]})

    def do_POST(self) -> None:
        """Answer a chat request."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path != "/v1/chat/completions":
            return self._error(404, f"no such path: {self.path}")
        try:
            request = json.loads(body)
            messages = request["messages"]
            paragraph = PARAGRAPH.search(messages[-1]["content"])
            summary = self.server.world.summarize(paragraph.group(1)) if paragraph else ""
        except (ValueError, KeyError, IndexError, TypeError) as error:
            return self._error(400, str(error))
        if request.get("model") != self.server.model:
            return self._error(404, f"the model {request.get('model')!r} is not served")
        return self._send(200, completion(next(self.server.numbers), self.server.model, messages, summary))

    def _error(self, status: int, message: str) -> None:
        self._send(status, {"error": {"message": message, "type": "invalid_request_error", "code": status}})

    def _send(self, status: int, body: dict[str, Any]) -> None:
        payload = json.dumps(body).encode()
        self.send_response_only(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)


def completion(number: int, model: str, messages: list[dict[str, str]], text: str) -> dict[str, Any]:
    """Return a chat completion; a token is a word here."""
    prompt = sum(len(message["content"].split()) for message in messages)
    answer = len(text.split())
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer},
    }


if __name__ == "__main__":
    Server(int(sys.argv[2]), sys.argv[1]).serve_forever()
