"""For agents built on the official `a2a-sdk`: a transport that keeps what the SDK's own throws away.

The SDK (1.3.0) turns an error whose number it does not know into a sentence, and keeps of the others the metadata of
the first detail only; of numbers it keeps doubles. With this transport a failed skill raises `AAPError`, complete, and
`payload_of` gives the answer's data with its whole numbers as integers.

::

    config = ClientConfig(streaming=False)
    factory = ClientFactory(config)
    factory.register("JSONRPC", forecourt_transport(config))
    client = factory.create(card)

A2A's own errors stay the SDK's exceptions; `protocol_error` gives the A2AError of one, and `raw` what was received.
"""

from collections.abc import Callable, Mapping
from typing import Any

import httpx
from a2a.client import ClientConfig
from a2a.client.transports.jsonrpc import JsonRpcTransport
from a2a.types import AgentCard, Message, SendMessageResponse, StreamResponse
from google.protobuf import json_format

from forecourt.a2a import A2AError
from forecourt.client.dialect import dialect, versions
from forecourt.client.failure import Answer
from forecourt.client.reading import from_json_rpc, from_metadata
from forecourt.errors import AAPError

__all__ = ["ForecourtTransport", "activation", "error_of", "forecourt_transport", "payload_of", "protocol_error"]


class ForecourtTransport(JsonRpcTransport):
    """The SDK's JSON-RPC transport, with errors read as Forecourt reads them."""

    def _check_jsonrpc_response(self, response_data: Any) -> dict[str, Any]:
        """Raise the failure that an answer carries before the SDK makes its own exception of it."""
        error = response_data.get("error") if isinstance(response_data, dict) else None
        if error:
            failure = from_json_rpc(error, _answer(response_data))
            if isinstance(failure, AAPError):
                raise failure
            try:
                super()._check_jsonrpc_response(response_data)
            except Exception as converted:
                raise converted from failure
        checked: dict[str, Any] = super()._check_jsonrpc_response(response_data)
        return checked


def _answer(response: Mapping[str, Any]) -> Answer:
    """Return the envelope as far as the SDK shows it: the JSON, without the headers."""
    from forecourt.client.json_text import encode

    return Answer("", 200, {"content-type": "application/json"}, encode(response))


def forecourt_transport(config: ClientConfig) -> Callable[[AgentCard, str, ClientConfig], ForecourtTransport]:
    """Return what `ClientFactory.register("JSONRPC", …)` takes. The connections are those of `config.httpx_client`,
    or the transport's own, which ends with it.
    """
    shared = config.httpx_client

    def produce(card: AgentCard, url: str, config: ClientConfig) -> ForecourtTransport:
        del config
        if shared is not None:
            return ForecourtTransport(shared, card, url, is_shared_httpx=True)
        return ForecourtTransport(httpx.AsyncClient(), card, url)

    return produce


def activation(card: AgentCard) -> dict[str, str]:
    """Return the service parameters that activate the newest AAP contract of a card which this package implements:
    `ClientCallContext(service_parameters=activation(card))`. Empty when there is none.
    """
    declared = {extension.uri for extension in card.capabilities.extensions}
    for version in versions():
        uri = dialect(version).extension_uri
        if uri in declared:
            return {"A2A-Extensions": uri}
    return {}


def payload_of(answer: SendMessageResponse | StreamResponse | Message) -> Any:
    """Return the first data of an answer as plain values, whole numbers as integers; None where there is no data.

    The SDK holds JSON numbers as doubles: up to 2**53 nothing is lost, and AAP has no larger ones.
    """
    message = answer if isinstance(answer, Message) else answer.message
    for part in message.parts:
        if part.HasField("data"):
            return _whole(json_format.MessageToDict(part.data))
    return None


def _whole(value: Any) -> Any:
    # protobuf has bounded the depth of what it parsed.
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _whole(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [_whole(entry) for entry in value]
    return value


def error_of(error: Exception) -> AAPError | None:
    """Return the skill's failure behind an exception of the SDK's own transport, as far as that kept it: code, id and
    `retryable` from the metadata of AAP's ErrorInfo, without details. None where nothing of it is left.
    """
    if isinstance(error, AAPError):
        return error
    metadata = getattr(error, "data", None)
    return from_metadata(metadata, str(error)) if isinstance(metadata, Mapping) else None


def protocol_error(error: BaseException) -> A2AError | None:
    """Return the A2AError, as it was received, behind an SDK exception that this transport let through."""
    cause = error.__cause__
    return cause if isinstance(cause, A2AError) else None
