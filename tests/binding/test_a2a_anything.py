"""Whatever comes in, what goes out of the A2A binding is a well-formed answer that repeats nothing but ids."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.binding.exchange import BINDINGS, JSON, MARK, URIS, checked, envelope, read, with_message, with_part
from tests.contract.example_requests import VERSIONS

from forecourt.binding import Answer
from forecourt.binding.a2a import HEADERS, Call
from forecourt.contract import SKILLS

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
PARTS = st.lists(
    st.fixed_dictionaries({}, optional={"data": VALUES, "text": VALUES, "mediaType": VALUES}) | VALUES, max_size=3
)
MESSAGES = st.fixed_dictionaries(
    {"messageId": st.just("m") | VALUES, "role": st.just("ROLE_USER") | VALUES, "parts": PARTS | VALUES},
    optional={"contextId": VALUES},
)
REQUESTS = st.fixed_dictionaries(
    {
        "jsonrpc": st.just("2.0") | VALUES,
        "method": st.sampled_from(["SendMessage", "GetTask"]) | VALUES,
        "params": st.fixed_dictionaries({"message": MESSAGES | VALUES}, optional={"configuration": VALUES}) | VALUES,
    },
    optional={"id": VALUES},
)
HEADER_SETS = st.dictionaries(
    st.sampled_from(HEADERS),
    st.sampled_from(["", "application/json", "1.0", "0.3", *URIS.values()]) | st.text(max_size=9),
)


@settings(deadline=None, max_examples=300)
@given(
    version=st.sampled_from(VERSIONS),
    body=st.binary(max_size=60) | (REQUESTS | VALUES).map(json.dumps).map(str.encode),
    headers=HEADER_SETS | st.just(JSON),
)
@pytest.mark.requirement("ERR-DETAILS-NO-STACK-TRACE")
def test_anything_in_gives_a_call_or_a_well_formed_answer(version: str, body: bytes, headers: dict[bytes, str]) -> None:
    outcome = BINDINGS[version].read(body, headers)
    if isinstance(outcome, Call):
        outcome = BINDINGS[version].write(
            Call(outcome.id, None, SKILLS["dealer.information"], outcome.context_id), b"{}"
        )
    if outcome.status == 204:
        assert outcome == Answer(204, (), b"")
        return
    found = checked(outcome)
    assert outcome.status == 200
    assert found["id"] is None or isinstance(found["id"], str | int | float)
    if "error" in found:
        assert type(found["error"]["code"]) is int
        assert isinstance(found["error"]["message"], str)
        assert "Traceback" not in found["error"]["message"]


@settings(deadline=None, max_examples=100)
@given(version=st.sampled_from(VERSIONS), place=st.integers(0, 9), rest=VALUES)
def test_nothing_that_was_sent_comes_back_but_the_ids(version: str, place: int, rest: Any) -> None:
    marked = {"x": MARK, MARK: rest}
    bodies: list[dict[str, Any]] = [
        envelope(method=MARK), envelope(jsonrpc=MARK), envelope(params=MARK), envelope(params=marked),
        with_message(role=MARK), with_message(parts=[marked]), with_part(mediaType=MARK),
        with_message(contextId=marked), with_message(messageId=marked), envelope(id=marked),
    ]  # fmt: skip
    outcome = read(version, bodies[place])
    assert isinstance(outcome, Answer)
    assert MARK.encode() not in outcome.body
    assert json.dumps(MARK)[1:-1].encode() not in outcome.body
