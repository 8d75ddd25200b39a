"""The servers that commands talk to."""

from tests.server_process import servers

__all__ = ["servers"]
