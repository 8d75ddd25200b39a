"""The transport for the official SDK, in what needs no server; tests/interop has the rest over real HTTP."""

from a2a.types import AgentCapabilities, AgentCard, AgentExtension, Message, Part
from google.protobuf import json_format, struct_pb2
from tests.client.simulated import URIS

from forecourt.client.a2a_sdk import activation, error_of, payload_of, protocol_error
from forecourt.errors import AAPError


def message(data: object) -> Message:
    """Return a message with text and data."""
    value = json_format.ParseDict(data, struct_pb2.Value())
    return Message(parts=[Part(text="hi"), Part(data=value)])


def test_whole_numbers_are_integers_again_and_fractions_stay() -> None:
    found = payload_of(message({"price": 26780, "lat": 37.5, "deep": [{"n": 2**53}], "yes": True}))
    assert found == {"price": 26780, "lat": 37.5, "deep": [{"n": 2**53}], "yes": True}
    assert [type(found["price"]), type(found["lat"]), type(found["yes"])] == [int, float, bool]


def test_an_answer_without_data_has_none() -> None:
    assert payload_of(Message(parts=[Part(text="hi")])) is None


def test_the_newest_contract_of_a_card_is_activated() -> None:
    def card(*uris: str) -> AgentCard:
        return AgentCard(capabilities=AgentCapabilities(extensions=[AgentExtension(uri=uri) for uri in uris]))

    assert activation(card(URIS["1.1"], URIS["3.1"], "https://example.com/x")) == {"A2A-Extensions": URIS["3.1"]}
    assert activation(card("https://example.com/x")) == {}


def test_what_is_behind_an_exception_is_found_or_not() -> None:
    error = AAPError("RATE_LIMITED")
    assert error_of(error) is error
    assert error_of(ValueError()) is None
    assert protocol_error(ValueError()) is None
