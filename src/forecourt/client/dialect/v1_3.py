"""AAP 1.3: pages by skip, one seller an endpoint."""

from typing import Final

from forecourt.client.dialect.interface import Dialect

__all__ = ["DIALECT"]

DIALECT: Final = Dialect("1.3", "https://autoagentprotocol.org/extensions/aap/v1.3")
