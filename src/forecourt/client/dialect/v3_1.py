"""AAP 3.1: pages by cursor, and a request may name its seller."""

from typing import Final

from forecourt.client.dialect.interface import Dialect

__all__ = ["DIALECT"]

DIALECT: Final = Dialect("3.1", "https://autoagentprotocol.org/extensions/aap/v3.1", by_cursor=True, sellers=True)
