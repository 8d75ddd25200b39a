"""What every binding offers to the client."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from forecourt.client.dialect import Dialect
from forecourt.client.failure import Answer
from forecourt.client.http import Http
from forecourt.client.reading import unreadable
from forecourt.contract import Skill

__all__ = ["Carrier", "Payload", "checked"]

Payload = dict[str, Any]


class Carrier(ABC):
    """Carries payloads to one endpoint over one binding. It never tries twice: that is the client's to decide."""

    binding: ClassVar[str]

    def __init__(self, http: Http, endpoint: str) -> None:
        self.endpoint = endpoint
        self._http = http

    @abstractmethod
    async def send(
        self, skill: Skill, payload: Mapping[str, Any], dialect: Dialect, headers: Mapping[str, str], seconds: float
    ) -> tuple[Payload, Answer]:
        """Send a request payload and return the response payload with the answer that brought it.

        `headers` are the caller's credentials. Raises AAPError, A2AError, TransportError, each with the answer as it
        came in `raw`.
        """

    async def close(self) -> None:
        """Give back what the binding holds at the dealer; connections are the client's own."""
        return


def checked(payload: Any, skill: Skill, answer: Answer) -> Payload:
    """Return a response payload; TransportError for one of another type or without data."""
    if (
        not isinstance(payload, dict)
        or payload.get("type") != skill.response_type
        or not isinstance(payload.get("data"), dict)
    ):
        raise unreadable(answer, f"the answer holds no {skill.response_type}")
    return payload
