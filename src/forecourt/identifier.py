"""Identifiers that sort by the time they were made.

48 bits of milliseconds since 1970 and 80 random bits, written as 26 characters of Crockford's base 32 (the ULID
layout). Sorting the text sorts by time; within one millisecond the random part is counted up, so that one process
never makes two identifiers out of order.
"""

import os
import threading
import time

_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = [high + low for high in _DIGITS for low in _DIGITS]
_RANDOM_LIMIT = 1 << 80
_POOL_BYTES = 4096

_lock = threading.Lock()
_last_ms = 0
_last_random = 0
_pool = b""
_used = 0


def random_bytes(count: int) -> bytes:
    """Return so many bytes (4096 at most) that nobody can foretell: the system's, asked for in larger portions.

    Each call of the system gives the interpreter away, and an answer needs several of a few bytes.
    """
    with _lock:
        return _random(count)


def _random(count: int) -> bytes:
    global _pool, _used
    if _used + count > len(_pool):
        _pool, _used = os.urandom(_POOL_BYTES), 0
    _used += count
    return _pool[_used - count : _used]


def _forget_pool() -> None:
    global _pool, _used
    _pool, _used = b"", 0


if hasattr(os, "register_at_fork"):
    # Two processes must not go on with the same bytes.
    os.register_at_fork(after_in_child=_forget_pool)


def sortable_id(prefix: str = "") -> str:
    """Return ``prefix`` followed by 26 characters that sort by time; unguessable from any other identifier."""
    global _last_ms, _last_random
    with _lock:
        now = time.time_ns() // 1_000_000
        if now > _last_ms:
            _last_ms = now
            # The top bit stays clear, so that counting up within a millisecond cannot overflow.
            _last_random = int.from_bytes(_random(10)) >> 1
        else:
            # The clock stood still or went back: keep the last time and count up by an unguessable step.
            _last_random += 1 + int.from_bytes(_random(4))
            if _last_random >= _RANDOM_LIMIT:
                _last_ms += 1
                _last_random = int.from_bytes(_random(10)) >> 1
        value = (_last_ms << 80) | _last_random
    # 26 digits of 5 bits hold 130 bits: two more than the value has.
    return prefix + "".join([_PAIRS[(value >> shift) & 0x3FF] for shift in range(120, -1, -10)])
