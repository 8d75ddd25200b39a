"""Reading the agent card of a dealer, with patience: what it offers and where, whatever else stands on it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from forecourt.a2a import A2AError, AgentCard, AgentExtension, AgentInterface, FailureKind
from forecourt.client.address import endpoint_of
from forecourt.client.dialect import Dialect, dialect, versions
from forecourt.client.failure import DealerError
from forecourt.contract import SKILLS

__all__ = ["DealerCard", "choose", "read_card"]

_URI: Final = re.compile(
    r"https://autoagentprotocol\.org/extensions/(?:aap|a2a-automotive-retail)/v(\d{1,4}\.\d{1,4})(?:\.\d{1,4})?/?"
)
_OTHERS_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class DealerCard:
    """A dealer's agent card.

    `contracts` are the AAP extensions by version ("1.1"); old cards may declare several. `skills` are the ids of AAP's
    skills that the card lists; a card that lists none may still have them all. `card` is the whole card.
    """

    url: str
    name: str
    card: AgentCard = field(repr=False)
    contracts: Mapping[str, AgentExtension] = field(repr=False)
    skills: frozenset[str]

    @property
    def raw(self) -> Mapping[str, Any]:
        """The card as it came."""
        return self.card.raw or {}

    def endpoint(self) -> str:
        """Return the A2A endpoint: the first interface for JSON-RPC in A2A 1.0.

        Raises DealerError where there is none, or where it must not be used (`address.endpoint_of`).
        """
        for interface in self.card.interfaces:
            spoken = interface.protocol_version
            suits = spoken in ("", "1.0") or spoken.startswith("1.0.")
            if suits and interface.protocol_binding.upper() in ("JSONRPC", ""):
                return endpoint_of(self.url, interface.url)
        raise DealerError("the agent card has no JSON-RPC endpoint for A2A 1.0", FailureKind.BINDING_MISMATCH)


def read_card(url: str, payload: Any) -> DealerCard:
    """Read the card that was found at `url`.

    Raises DealerError, kind UNREADABLE for what is no card, BINDING_MISMATCH for an agent that is no AAP dealer.
    """
    try:
        card = AgentCard.from_payload(payload)
    except A2AError:
        raise DealerError("there is JSON at the card's address, but no agent card", FailureKind.UNREADABLE) from None
    if not card.interfaces and isinstance(payload.get("url"), str):
        # Cards from before A2A 1.0 name one endpoint at the top.
        old = AgentInterface(payload["url"], str(payload.get("preferredTransport") or ""), "")
        card = AgentCard.from_payload({**payload, "supportedInterfaces": [{"url": old.url}]})
    contracts: dict[str, AgentExtension] = {}
    for extension in card.extensions:
        match = _URI.fullmatch(extension.uri)
        if match:
            contracts.setdefault(match[1], extension)
    if not contracts:
        raise DealerError(_no_dealer(card, payload), FailureKind.BINDING_MISMATCH)
    listed = frozenset(skill.id for skill in card.skills) & SKILLS.keys()
    return DealerCard(url, _printable(card.name), card, contracts, listed)


def _no_dealer(card: AgentCard, payload: Mapping[str, Any]) -> str:
    if not (card.name or card.interfaces or card.skills or "capabilities" in payload):
        return "there is JSON at the card's address, but no agent card"
    others = ", ".join(_printable(extension.uri)[:100] for extension in card.extensions[:_OTHERS_NAMED])
    has = f"its extensions are {others}" if others else "it declares no extensions"
    return f"{_printable(card.name) or 'this agent'} is no AAP dealer: {has}"


def choose(card: DealerCard, wanted: str | None) -> Dialect:
    """Return the dialect to speak: the one that is wanted, else the newest that both sides have.

    Raises DealerError, kind BINDING_MISMATCH.
    """
    offered = sorted(card.contracts, key=lambda version: [-int(part) for part in version.split(".")])
    for version in versions():
        if version in card.contracts and wanted in (None, version):
            return dialect(version)
    speaks = f"this client speaks {', '.join(reversed(versions()))}"
    missing = f"contract {wanted} is not offered" if wanted else "no contract in common"
    raise DealerError(f"{missing}: the dealer offers {', '.join(offered)}; {speaks}", FailureKind.BINDING_MISMATCH)


def _printable(text: str) -> str:
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in text[:200])
