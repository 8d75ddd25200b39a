"""The signature of what we post: who sent it, and when, provable with a shared secret.

The header is `Forecourt-Signature: t=1777894800,v1=HEX`: the time in seconds since 1970, and HMAC-SHA256 over the
text of that time, a dot, and the body, byte for byte. Receivers that run Python check it with `verify_signature`.
"""

import hashlib
import hmac
import re
import time
from typing import Final

__all__ = ["SIGNATURE_HEADER", "TOLERANCE", "sign", "verify_signature"]

SIGNATURE_HEADER: Final = "Forecourt-Signature"

TOLERANCE: Final = 300.0
"""Seconds that a signature may be old, or ahead of the receiver's clock."""

_LONGEST: Final = 1024
_TIME: Final = re.compile(r"[0-9]{1,12}", re.ASCII)


def sign(secret: str, body: bytes, at: int, *others: str) -> str:
    """Return the header for `body`, signed `at` seconds since 1970.

    While a secret is exchanged, `others` sign too: a receiver may have any of them.
    """
    return ",".join([f"t={at}", *(f"v1={_digest(each, body, str(at))}" for each in (secret, *others))])


def verify_signature(
    secret: str, header: str, body: bytes, *, now: float | None = None, tolerance: float = TOLERANCE
) -> bool:
    """Tell whether `header` is a signature of exactly these bytes with `secret`, not older than `tolerance` seconds.

    `now` is the clock, in seconds since 1970. Of several v1 one must be right; other members are for versions to come.
    Takes no longer for a guess that is nearly right. Anything that is no such header is False.
    """
    if len(header) > _LONGEST:
        return False
    members = [member.strip().partition("=")[::2] for member in header.split(",")]
    times = [value for name, value in members if name == "t"]
    if len(times) != 1 or not _TIME.fullmatch(times[0]):
        return False
    if not abs((time.time() if now is None else now) - int(times[0])) <= tolerance:
        return False
    expected = _digest(secret, body, times[0]).encode()
    given = [value.encode("utf-8", "replace") for name, value in members if name == "v1"]
    return any([hmac.compare_digest(expected, value) for value in given])  # noqa: C419 (all of them, for even time)


def _digest(secret: str, body: bytes, at: str) -> str:
    return hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
