"""AAP 1.0: the agent is named by a string, and once more in the grant (official 1.1 lead schema, `source_agent`)."""

from collections.abc import Mapping
from typing import Any, Final

from forecourt.client.dialect.interface import Dialect

__all__ = ["DIALECT"]


class Dialect10(Dialect):
    """AAP 1.0, whose extension has a name of its own."""

    def lead(self, members: Mapping[str, Any], key: str, dealer_id: str | None) -> dict[str, Any]:
        """Return a `lead.submit` request with `source_agent` as a string and `consent.source_agent`."""
        changed = dict(members)
        agent = changed.get("source_agent")
        name = agent.get("name") if isinstance(agent, Mapping) else agent
        if name is not None:
            changed["source_agent"] = name
            if isinstance(changed.get("consent"), Mapping):
                changed["consent"] = {**changed["consent"], "source_agent": name}
        return super().lead(changed, key, dealer_id)


DIALECT: Final = Dialect10("1.0", "https://autoagentprotocol.org/extensions/a2a-automotive-retail/v1.0")
