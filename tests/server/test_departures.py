"""What connections write within one turn of the event loop leaves at its end, whole and in order."""

import asyncio
from collections.abc import Iterable
from typing import Any

from forecourt.server.departures import Departures


class Sent:
    """Remembers what is sent, over which connection, and is closed from the outside."""

    def __init__(self, log: list[tuple[str, bytes]], name: str = "") -> None:
        self.log, self.name = log, name
        self.closed = False

    def write(self, data: bytes) -> None:
        self.log.append((self.name, data))

    def writelines(self, pieces: Iterable[bytes]) -> None:
        self.write(b"".join(pieces))

    def is_closing(self) -> bool:
        return self.closed

    def get_write_buffer_size(self) -> int:
        return 5

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True


async def turn() -> None:
    await asyncio.sleep(0)


def test_all_connections_send_at_the_end_of_the_turn_in_the_order_of_their_answers() -> None:
    async def write() -> list[tuple[str, bytes]]:
        log: list[tuple[str, bytes]] = []
        departures = Departures()
        first: Any = departures.transport(Sent(log, "first"))  # type: ignore[arg-type]
        second: Any = departures.transport(Sent(log, "second"))  # type: ignore[arg-type]
        second.write(b"head")
        first.writelines((b"head", b"body"))
        second.write(b"body")
        assert log == []
        await turn()
        first.write(b"next")
        # Whoever wants to know what is unread, to close the connection for it, must not find what was never sent.
        assert first.get_write_buffer_size() == 5
        assert log[-1] == ("first", b"next")
        await turn()
        return log

    assert asyncio.run(write()) == [("second", b"headbody"), ("first", b"headbody"), ("first", b"next")]


def test_what_is_much_is_not_held_and_nothing_is_lost_or_sent_after_the_end() -> None:
    async def write() -> None:
        log: list[tuple[str, bytes]] = []
        sent = Sent(log)
        transport: Any = Departures().transport(sent)  # type: ignore[arg-type]
        transport.write(b"a")
        transport.write(large := b"d" * 100_000)
        assert log == [("", b"a" + large)]
        for _ in range(100):
            transport.write(b"e")
        assert 4 < len(log) < 10
        transport.write(b"f")
        transport.close()
        assert b"".join(data for _, data in log) == b"a" + large + b"e" * 100 + b"f"
        transport.write(b"late")
        await turn()
        assert not any(b"late" in data for _, data in log)

    asyncio.run(write())


def test_one_connection_that_fails_keeps_no_other_from_its_answer() -> None:
    class Reset(Sent):
        def write(self, data: bytes) -> None:  # noqa: ARG002 - the transport's
            raise RuntimeError("unable to perform operation; the handler is closed")

    async def write() -> None:
        log: list[tuple[str, bytes]] = []
        departures = Departures()
        reset = Reset(log)
        failing: Any = departures.transport(reset)  # type: ignore[arg-type]
        other: Any = departures.transport(Sent(log, "other"))  # type: ignore[arg-type]
        failing.write(b"x")
        other.write(b"y")
        await turn()
        assert log == [("other", b"y")]
        assert reset.closed

    asyncio.run(write())
