"""A2A answers: what wins where status and body disagree."""

import json
from typing import Any

import pytest
from tests.client.simulated import aap, detail

from forecourt.a2a import A2AError, FailureKind
from forecourt.client.carrier.a2a import read
from forecourt.client.failure import Answer, TransportError
from forecourt.contract import SKILLS
from forecourt.errors import AAPError

SEARCH = SKILLS["inventory.search"]
DATA = {"type": "inventory.search.response", "data": {"total": 1}}


def answer(body: Any, status: int = 200) -> Answer:
    return Answer("https://x.example.com/a2a", status, {"content-type": "application/json"}, json.dumps(body).encode())


def result(*parts: Any) -> Any:
    return {"jsonrpc": "2.0", "id": "1", "result": {"message": {"parts": list(parts)}}}


def error(number: int, data: Any = None) -> Any:
    return {"jsonrpc": "2.0", "id": None, "error": {"code": number, "message": "m", "data": data}}


def test_the_first_part_with_data_is_the_answer() -> None:
    assert read(answer(result({"text": "hi"}, {"data": DATA}, {"data": {"type": "x"}})), "1", SEARCH) == DATA


@pytest.mark.parametrize("status", [200, 400, 404, 429, 500, 503])
def test_a_skill_error_wins_over_every_status(status: int) -> None:
    with pytest.raises(AAPError):
        read(answer(error(-32000, detail(aap("RATE_LIMITED", True))), status), "1", SEARCH)


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, FailureKind.AUTH_REQUIRED), (403, FailureKind.AUTH_REQUIRED), (429, FailureKind.STATUS),
     (502, FailureKind.STATUS), (503, FailureKind.STATUS), (302, FailureKind.BAD_ENDPOINT)],
)  # fmt: skip
def test_a_status_that_says_what_to_do_wins_over_an_error_of_the_protocol(status: int, kind: FailureKind) -> None:
    with pytest.raises(TransportError) as caught:
        read(answer(error(-32600), status), "1", SEARCH)
    assert (caught.value.kind, caught.value.status) == (kind, status)
    assert isinstance(caught.value.__cause__, A2AError)


@pytest.mark.parametrize("status", [200, 400, 404, 500])
def test_an_error_of_the_protocol_wins_over_other_statuses(status: int) -> None:
    with pytest.raises(A2AError) as caught:
        read(answer(error(-32601), status), "1", SEARCH)
    assert caught.value.raw.status == status


@pytest.mark.parametrize("status", [201, 299])
def test_any_success_is_one(status: int) -> None:
    assert read(answer(result({"data": DATA}), status), "1", SEARCH) == DATA


@pytest.mark.parametrize(
    "body",
    [None, 5, {}, result(), result({"text": "x"}), result("x"), result({"data": 1}), result({"data": {"type": "x"}}),
     {"id": "1", "result": {"task": {"id": "t"}}}, result({"data": DATA}) | {"id": "2"}],
)  # fmt: skip
def test_what_holds_no_answer_is_unreadable(body: Any) -> None:
    with pytest.raises(TransportError) as caught:
        read(answer(body), "1", SEARCH)
    assert caught.value.kind is FailureKind.UNREADABLE


def test_a_success_in_the_body_of_a_failure_is_none() -> None:
    with pytest.raises(TransportError) as caught:
        read(answer(result({"data": DATA}), 500), "1", SEARCH)
    assert caught.value.kind is FailureKind.STATUS
