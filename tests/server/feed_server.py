"""A web server of its own for tests of fetching: a real one, in a thread, that answers as it is told."""

import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

__all__ = ["Answer", "FeedServer", "feed_server"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What is answered at a path. `promised` is the length that is announced; the real one if it is None."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    promised: int | None = None


@dataclass(slots=True)
class FeedServer:
    """Answers by path, and the requests that came: each its path and its headers, with names in lower case."""

    port: int = 0
    answers: dict[str, Answer] = field(default_factory=dict)
    scheme: str = "http"
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def address(self, path: str, credentials: str = "") -> str:
        """Return the address of a path."""
        return f"{self.scheme}://{credentials}127.0.0.1:{self.port}{path}"


@contextmanager
def feed_server(tls: ssl.SSLContext | None = None) -> Iterator[FeedServer]:
    """Run one on a free port, with `tls` for https. An ETag in an answer's headers makes it conditional."""
    state = FeedServer(scheme="https" if tls else "http")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            state.requests.append((self.path, headers))
            answer = state.answers.get(self.path.split("?")[0], Answer(status=404))
            tag = answer.headers.get("ETag")
            if tag is not None and headers.get("if-none-match") == tag:
                self.send_response(304)
                self.end_headers()
                return
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body) if answer.promised is None else answer.promised))
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that the base has
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    state.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
