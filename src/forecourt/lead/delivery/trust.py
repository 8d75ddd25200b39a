"""Whom a delivery over TLS trusts: one context for all targets of a way that trust the same certificates.

Reading a system's certificates takes tens of milliseconds, and a network has thousands of targets.
"""

import os
import ssl
from functools import lru_cache
from typing import Final

from forecourt.lead.delivery import TargetError

__all__ = ["trusting"]

_CONTEXTS: Final = 64
"""How many are remembered; a target keeps its own for as long as it is there."""
_ENVIRONMENT: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""Where OpenSSL is told of other certificates than the system's."""


def trusting(way: str, ca_file: str | None) -> ssl.SSLContext:
    """Return the context of a way to deliver, with the certificates in `ca_file` (None: the system's).

    Not to be changed. Ways do not share one, since what a protocol settles by TLS (ALPN) is set on it.
    Raises TargetError.
    """
    try:
        mark: tuple[object, ...] = tuple(map(os.environ.get, _ENVIRONMENT))
        if ca_file is not None:
            found = os.stat(ca_file)
            mark = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
        return _context(way, ca_file, mark)
    except (OSError, ValueError):
        raise TargetError("ca_file: is no file of PEM certificates that can be read") from None


@lru_cache(_CONTEXTS)
def _context(way: str, ca_file: str | None, mark: tuple[object, ...]) -> ssl.SSLContext:
    del way, mark
    return ssl.create_default_context(cafile=ca_file)
