"""MCP on standard input and output: one message a line, bounded, several at once."""

import asyncio
import io
import json
import os
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from forecourt.server.stdio import serve_lines

SECONDS = 20


def served(incoming: bytes, answer: Callable[[bytes], Awaitable[bytes | None]], longest: int = 100) -> list[bytes]:
    """Serve lines to their end and return what was written, sorted: answers come in any order."""
    outgoing = io.BytesIO()
    asyncio.run(asyncio.wait_for(serve_lines(answer, io.BytesIO(incoming), outgoing, longest), SECONDS))
    return sorted(outgoing.getvalue().splitlines())


async def echo(line: bytes) -> bytes | None:
    return None if line == b"quiet" else line.upper()


def test_every_line_is_answered_and_empty_ones_are_passed_over() -> None:
    assert served(b"one\n\n  \r\ntwo\r\nquiet\nthree", echo) == [b"ONE", b"THREE", b"TWO"]


def test_no_input_is_no_work() -> None:
    assert served(b"", echo) == []


def test_a_line_that_is_too_long_is_told_and_the_next_one_answered() -> None:
    long, after = served(b"x" * 1000 + b"\n" + b"y" * 100 + b"\n", echo)[::-1]
    assert after == b"Y" * 100
    told = json.loads(long)
    assert (told["id"], told["error"]["code"]) == (None, -32600)
    assert "100 bytes" in told["error"]["message"]


def test_several_lines_are_answered_side_by_side_but_not_all_of_them() -> None:
    under_way = most = 0
    gate = asyncio.Event()

    async def slow(line: bytes) -> bytes:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        if most == 16:
            gate.set()
        await gate.wait()
        under_way -= 1
        return line

    assert len(served(b"line\n" * 100, slow)) == 100
    assert most == 16


def test_what_was_begun_when_the_input_ends_is_finished() -> None:
    async def slow(line: bytes) -> bytes:
        await asyncio.sleep(0.1)
        return line

    assert served(b"last\n", slow) == [b"last"]


def test_a_host_that_is_gone_ends_nothing_else() -> None:
    class Gone(io.BytesIO):
        def write(self, _: Any) -> int:
            raise BrokenPipeError

    asked: list[bytes] = []

    async def remember(line: bytes) -> bytes:
        asked.append(line)
        return line

    asyncio.run(asyncio.wait_for(serve_lines(remember, io.BytesIO(b"a\nb\n"), Gone(), 100), SECONDS))
    assert asked == [b"a", b"b"]


def test_an_answer_comes_while_the_input_is_still_open() -> None:
    read_in, write_in = os.pipe()
    read_out, write_out = os.pipe()
    with os.fdopen(read_in, "rb", buffering=0) as incoming, os.fdopen(write_out, "wb") as outgoing:
        thread = threading.Thread(target=lambda: asyncio.run(serve_lines(echo, incoming, outgoing, 100)))
        thread.start()
        with os.fdopen(read_out, "rb") as answers, os.fdopen(write_in, "wb") as questions:
            for word in (b"one\n", b"two\n"):
                questions.write(word)
                questions.flush()
                assert answers.readline() == word.upper()
        thread.join(SECONDS)
        assert not thread.is_alive()


def test_a_fault_in_answering_ends_the_service() -> None:
    async def fail(_: bytes) -> bytes:
        raise KeyError("mistake")

    with pytest.raises(ExceptionGroup):
        served(b"line\n", fail)
