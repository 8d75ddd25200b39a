"""How a contract travels: protocol bytes and headers in, a call out; a reply in, protocol bytes out. No I/O.

A binding is one module here, found by its name; it reads its protocol and knows nothing of cars.
"""

from typing import Final

import msgspec

__all__ = ["REFUSED", "Answer"]

REFUSED: Final = "refused"
"""The outcome of what a binding turns away in words of its own."""


class Answer(msgspec.Struct, frozen=True):
    """What goes back over HTTP: a status, headers (lower-case names) and a body; 204 has none.

    `outcome` is for those who watch the agent: `ok`, an AAP code, the metric label of a protocol error, or `REFUSED`
    where there is no such word. `error_id` is that of the `aap.error` in the body, None where there is none.
    """

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    outcome: str = "ok"
    error_id: str | None = None
