"""The servers that conformance cases run against."""

from tests.server_process import servers

__all__ = ["servers"]
