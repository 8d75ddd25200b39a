"""What every contract offers to the bindings and to the server."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from forecourt.contract.skill import SKILLS, Skill
from forecourt.contract.validation import SchemaSet
from forecourt.errors import AAPError
from forecourt.model import Capabilities, Reply, Request


@dataclass(frozen=True, slots=True)
class Offer:
    """What one deployment offers, which a contract checks requests against.

    `capabilities` is what is switched on; `known_features` are the feature codes of the vocabulary, offered or not.
    """

    capabilities: Capabilities
    known_features: frozenset[str]


class Contract(ABC):
    """One AAP version over one deployment's offer. Instances are immutable and safe to share."""

    version: ClassVar[str]
    """ "1.1", as in URLs of the server."""
    extension_uri: ClassVar[str]
    """The A2A extension URI that names this contract exactly."""
    schema_base_url: ClassVar[str]
    """Where AAP publishes this contract's schemas; their `$id`s begin with it."""
    activation: ClassVar[bool]
    """Whether a supplied A2A-Extensions list must name `extension_uri`, and messages carry a contextId."""
    typed_details: ClassVar[bool]
    """Whether an A2A `error.data` is an array of typed details; otherwise it is the `aap.error` object itself."""

    skills: ClassVar[Mapping[str, Skill]] = SKILLS

    def __init__(self, offer: Offer) -> None:
        self.offer = offer
        self.schemas = SchemaSet.load(self.version)
        self._by_request_type = {skill.request_type: skill for skill in self.skills.values()}

    def skill_of(self, payload: Any) -> Skill | None:
        """Return the skill that the payload's `type` asks for, None when this contract has no such request."""
        kind = payload.get("type") if isinstance(payload, dict) else None
        return self._by_request_type.get(kind) if isinstance(kind, str) else None

    @abstractmethod
    def read(self, payload: Any) -> Request:
        """Check a request payload and read it; AAPError lists everything that is wrong with it."""

    @abstractmethod
    def pieces(self, reply: Reply) -> Sequence[bytes]:
        """Return the response payload as JSON bytes in pieces, so that a binding copies them once."""

    def write(self, reply: Reply) -> bytes:
        """Return the response payload as JSON bytes."""
        return b"".join(self.pieces(reply))

    @abstractmethod
    def write_error(self, error: AAPError) -> dict[str, Any]:
        """Return the `aap.error` object of this contract, with a code that this contract has."""

    @abstractmethod
    def extension_params(self) -> dict[str, Any]:
        """Return the `params` of the AAP extension on the agent card."""
