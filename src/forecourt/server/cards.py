"""The agent card of one contract at one endpoint."""

from typing import Any

from forecourt import __version__
from forecourt.a2a import AgentCard, AgentExtension, AgentInterface, AgentSkill
from forecourt.contract import Contract

__all__ = ["card"]


def card(contract: Contract, name: str, endpoint: str) -> dict[str, Any]:
    """Return the card that says: this dealer, this one contract, at this address.

    Exactly one AAP extension is declared (CONTRACTS.md section 2), required where the contract must be activated.
    """
    skills = [
        AgentSkill(
            skill.id,
            skill.name,
            skill.description,
            skill.tags,
            input_modes=(skill.request_media_type, "application/json"),
            output_modes=(skill.response_media_type, "application/json"),
        )
        for skill in contract.skills.values()
    ]
    extension = AgentExtension(
        contract.extension_uri,
        f"Auto Agent Protocol {contract.version}: search a dealership's stock and submit consented leads.",
        required=contract.activation,
        params=contract.extension_params(),
    )
    return AgentCard(
        name=name,
        description=f"Dealer agent of {name}: its stock, its rooftops, and leads with the shopper's consent.",
        version=__version__,
        interfaces=(AgentInterface(endpoint),),
        skills=skills,
        extensions=(extension,),
        documentation_url="https://autoagentprotocol.org/",
    ).to_payload()
