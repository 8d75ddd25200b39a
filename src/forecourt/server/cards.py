"""The agent card of one contract at one endpoint."""

from collections.abc import Sequence
from typing import Any

from forecourt import __version__
from forecourt.a2a import AgentCard, AgentExtension, AgentInterface, AgentSkill, SecurityRequirement
from forecourt.contract import Contract
from forecourt.server.admission import Admission

__all__ = ["card"]


def card(contract: Contract, name: str, endpoint: str, admission: Admission) -> dict[str, Any]:
    """Return the card that says: this dealer, this one contract, at this address, open to these callers.

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
            security_requirements=admission.security_requirements(skill.id),
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
        security_schemes=admission.security_schemes(),
        # What the card itself requires holds for every skill: only said where none is open to anybody.
        security_requirements=_common(skills),
        documentation_url="https://autoagentprotocol.org/",
    ).to_payload()


def _common(skills: Sequence[AgentSkill]) -> Sequence[SecurityRequirement]:
    """Return the requirements that all skills share, none unless they are the same for each."""
    first = skills[0].security_requirements
    return first if all(skill.security_requirements == first for skill in skills) else ()
