"""The servers that other people's clients call."""

from tests.server_process import servers

__all__ = ["servers"]
