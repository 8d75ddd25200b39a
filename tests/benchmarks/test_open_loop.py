"""The open-loop generator: requests go out when they are due, and latency counts from then."""

import contextlib
import itertools
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import pytest
from benchmarks.open_loop import Due, Seen, arrivals, run

REQUEST = Due(b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n", mark=b"good")
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nvery good"


@contextlib.contextmanager
def answering(respond: Callable[[int], tuple[float, bytes]]) -> Iterator[int]:
    """Serve at a port: `respond` gives, by a request's number, after how many seconds which bytes are sent.

    No bytes close the connection.
    """
    numbers = itertools.count(1)
    ended = threading.Event()

    class Answers(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(OSError):
                while self.request.recv(65_536):
                    wait, answer = respond(next(numbers))
                    if ended.wait(wait) or not answer:
                        return
                    self.request.sendall(answer)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            ended.set()
            server.shutdown()
            thread.join()


def every(seconds: float, count: int) -> npt.NDArray[np.float64]:
    """Return so many times, one every so many seconds."""
    return np.array([number * seconds for number in range(count)], dtype=np.float64)


def seen(latencies: list[float], **members: float) -> Seen:
    """Return what a run would have shown with these latencies."""
    found = {"offered": 10.0, "seconds": 1.0, "answered": len(latencies), "failures": 0, "lag_ms": 0.0, "busy": 0.1}
    return Seen(latencies_ms=np.array(latencies), gave_up=False, **(found | members))  # type: ignore[arg-type]


def test_percentiles_are_latencies_that_were_seen() -> None:
    hundred = seen([float(number) for number in range(1, 101)])
    # The nearest rank: the smallest value that so many of all do not exceed.
    assert [hundred.percentile(share) for share in (0.5, 0.9, 0.99, 0.999, 1.0)] == [50, 90, 99, 100, 100]
    assert seen([7.0]).percentile(0.5) == 7
    assert seen([]).percentile(0.99) == float("inf")


def test_an_answer_is_known_by_its_mark_wherever_its_packets_are_cut_and_by_each_of_its_statuses() -> None:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), InPieces) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            port = server.server_address[1]
            for due, failures in (
                (REQUEST, 4),
                (Due(REQUEST.wire, b"good", (b"200", b"409")), 0),
                (Due(REQUEST.wire, b"bad", (b"200", b"409")), 4),
            ):
                assert run(port, [due] * 4, every(0.05, 4)).failures == failures
        finally:
            server.shutdown()
            thread.join()


class InPieces(socketserver.BaseRequestHandler):
    """Answers 409 in pieces, each a packet of its own."""

    def handle(self) -> None:
        with contextlib.suppress(OSError):
            self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while self.request.recv(65_536):
                for piece in (b"HTTP/1.1 409 Conflict\r\ncontent-length: 9\r\n\r\n", b"very g", b"oo", b"d"):
                    self.request.sendall(piece)
                    time.sleep(0.003)


def test_requests_are_due_at_the_rate_that_is_asked_for_and_the_same_by_the_same_seed() -> None:
    times = arrivals(1000, 20, seed=4)
    assert len(times) == 20_000
    assert times[-1] == pytest.approx(20, rel=0.05)
    assert (np.diff(times) > 0).all()
    # Of a Poisson process the gaps' standard deviation is their mean.
    assert np.diff(times).std() == pytest.approx(0.001, rel=0.05)
    assert (arrivals(1000, 20, seed=4) == times).all()
    assert not (arrivals(1000, 20, seed=5) == times).all()


def test_what_is_due_while_the_server_stalls_waits_and_that_counts() -> None:
    # The first request of the one connection takes 400 ms; nineteen more are due 10 ms after one another meanwhile.
    times = every(0.01, 20)
    with answering(lambda number: (0.4 if number == 1 else 0.0, ANSWER)) as port:
        found = run(port, [REQUEST] * 20, times, connections=1)
    assert (found.answered, found.failures, found.gave_up) == (20, 0, False)
    # A closed loop would have seen one slow answer; here the nth was due 10 ms * n after the first and waited the rest.
    waited = found.latencies_ms + times * 1000
    assert (waited >= 395).all()
    assert found.percentile(0.5) >= 295


def test_requests_do_not_wait_for_one_another_where_there_are_connections() -> None:
    times = every(0.01, 20)
    with answering(lambda number: (2.0 if number == 1 else 0.0, ANSWER)) as port:
        began = time.monotonic()
        found = run(port, [REQUEST] * 20, times, connections=8)
        taken = time.monotonic() - began
    assert found.answered == 20
    assert found.percentile(1.0) >= 1995
    assert found.percentile(0.5) < 1000
    assert taken < 8


def test_answers_that_are_not_what_they_should_be_are_failures() -> None:
    answers = {
        1: ANSWER,
        2: ANSWER.replace(b"good", b"evil"),
        3: ANSWER.replace(b"200 OK", b"500 No"),
        4: ANSWER.replace(b"\r\n\r\n", b"\r\nx: 1\r\n\r\n"),
    }
    with answering(lambda number: (0.0, answers[number])) as port:
        found = run(port, [REQUEST] * 4, every(0.05, 4), connections=1)
    assert (found.answered, found.failures) == (4, 2)


def test_a_request_whose_connection_is_closed_is_sent_once_more_and_then_failed() -> None:
    with answering(lambda number: (0.0, b"" if number == 1 else ANSWER)) as port:
        once = run(port, [REQUEST], np.zeros(1))
    with answering(lambda _: (0.0, b"")) as port:
        always = run(port, [REQUEST], np.zeros(1))
    assert (once.answered, once.failures) == (1, 0)
    assert (always.answered, always.failures) == (1, 1)


def test_a_run_that_falls_behind_is_given_up() -> None:
    with answering(lambda _: (5.0, ANSWER)) as port:
        began = time.monotonic()
        found = run(port, [REQUEST] * 1000, every(0.01, 1000), connections=1, behind=0.3)
        taken = time.monotonic() - began
    assert found.gave_up
    assert taken < 4
    assert found.failures == len(found.latencies_ms) > 0


def test_a_generator_that_is_at_its_end_says_so() -> None:
    assert seen([1.0]).excuse == ""
    assert "at its end (97% of a processor)" in seen([1.0], busy=0.97).excuse
    assert "25 ms late" in seen([1.0], lag_ms=25.0).excuse
