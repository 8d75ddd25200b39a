"""The PAP binding without I/O: payloads in, answers out (CONTRACTS.md section 4, row PAP; "Error code reference")."""

import json
from typing import Any

import pytest

from forecourt.binding import Answer
from forecourt.binding.pap import IDEMPOTENCY_KEY, STATUSES, PAPBinding, answer, refuse
from forecourt.contract import SKILLS, Offer, contract_class
from forecourt.errors import CODES, AAPError, Kind
from forecourt.model import Capabilities

BINDING = PAPBinding(contract_class("3.1")(Offer(Capabilities((), (), ()), frozenset())))
SEARCH = SKILLS["inventory.search"]
JSON = "application/json"

STATUS_OF_CODE = {
    "UNSUPPORTED_SKILL": 404,
    "UNSUPPORTED_FILTER": 422,
    "UNSUPPORTED_SORT": 422,
    "INVALID_CURSOR": 422,
    "SCHEMA_VALIDATION_FAILED": 422,
    "MISSING_REQUIRED_FIELD": 422,
    "INVALID_CONDITION": 422,
    "DEALER_NOT_FOUND": 404,
    "VEHICLE_NOT_FOUND": 404,
    "VEHICLE_UNAVAILABLE": 409,
    "CONTACT_CONSENT_REQUIRED": 403,
    "INVALID_CONSENT": 403,
    "APPOINTMENT_TIME_UNAVAILABLE": 409,
    "IDEMPOTENCY_CONFLICT": 409,
    "RATE_LIMITED": 429,
    "INTERNAL_ERROR": 500,
}
"""The source page's table, written down a second time."""


def read(payload: Any, content_type: str | None = JSON) -> Any:
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return BINDING.read(SEARCH, body, content_type)


@pytest.mark.requirement(
    "ERR-ENVELOPE-PAP", "ERR-PAP-403", "ERR-PAP-404", "ERR-PAP-409", "ERR-PAP-422", "ERR-PAP-422-UNNAMED",
    "ERR-PAP-429", "ERR-PAP-500",
)  # fmt: skip
@pytest.mark.parametrize("code", CODES)
def test_an_error_is_the_bare_object_under_the_status_of_its_code(code: str) -> None:
    error = AAPError(code)
    answered = BINDING.fail(error)
    assert answered.status == STATUS_OF_CODE[code]
    assert json.loads(answered.body) == error.to_payload()
    assert (b"content-type", b"application/json") in answered.headers
    assert (b"cache-control", b"no-store") in answered.headers


def test_every_code_and_every_kind_has_a_status() -> None:
    assert STATUS_OF_CODE.keys() == CODES.keys()
    assert STATUSES.keys() == set(Kind)


@pytest.mark.requirement("ERR-RETRY-AFTER-HEADER")
@pytest.mark.parametrize(
    ("milliseconds", "seconds"), [(0, 1), (1, 1), (999, 1), (1000, 1), (1001, 2), (1500, 2), (60_000, 60), (60_001, 61)]
)
def test_throttling_says_in_whole_seconds_rounded_up_how_long_to_wait(milliseconds: int, seconds: int) -> None:
    answered = BINDING.fail(AAPError("RATE_LIMITED", retry_after_ms=milliseconds))
    assert dict(answered.headers)[b"retry-after"] == b"%d" % seconds


def test_no_other_error_says_how_long_to_wait() -> None:
    for code in CODES.keys() - {"RATE_LIMITED"}:
        assert b"retry-after" not in dict(BINDING.fail(AAPError(code)).headers)


@pytest.mark.parametrize(
    "content_type", [JSON, "application/json; charset=utf-8", "Application/JSON", SEARCH.request_media_type]
)
def test_a_payload_is_read_as_it_is(content_type: str) -> None:
    payload = {"type": "inventory.search.request", "filters": {"year_min": 2020}}
    assert read(payload, content_type) == payload


def test_a_payload_that_is_no_object_is_left_to_the_contract() -> None:
    assert [read(payload) for payload in (None, 5, [1], "x", {"type": 5}, {"type": "no.such.request"})] == [
        None, 5, [1], "x", {"type": 5}, {"type": "no.such.request"},
    ]  # fmt: skip


@pytest.mark.parametrize("content_type", [None, "", "text/plain", "application/json; charset=latin-1", "text/json"])
def test_another_content_type_is_not_read(content_type: str | None) -> None:
    answered = read({}, content_type)
    assert (answered.status, json.loads(answered.body)["error"]) == (415, "unsupported_media_type")


@pytest.mark.requirement("ERR-INTRO-PROTOCOL-OWN-FORM")
@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b'{"a":1,"a":2}', b"[" * 1000, b"NaN", b'"\\ud800"'])
def test_what_is_no_json_is_refused_in_paps_own_form_without_being_repeated(body: bytes) -> None:
    answered = read(body)
    assert isinstance(answered, Answer)
    assert answered.status == 400
    assert json.loads(answered.body).keys() == {"error", "error_description"}


def test_a_payload_for_another_skill_breaks_the_schema_of_the_operation() -> None:
    with pytest.raises(AAPError) as refused:
        read({"type": "lead.submit.request"})
    assert refused.value.code == "SCHEMA_VALIDATION_FAILED"
    assert [(each.location, each.keyword) for each in refused.value.problems] == [("/type", "const")]
    assert "lead.submit" not in json.dumps(refused.value.to_payload())


def test_an_answer_is_the_payload_and_is_not_stored() -> None:
    answered = BINDING.write(b'{"type":', b'"x"}')
    assert (answered.status, answered.body) == (200, b'{"type":"x"}')
    assert answered.headers == ((b"content-type", b"application/json"), (b"cache-control", b"no-store"))


def test_a_refusal_has_the_headers_that_it_is_given() -> None:
    answered = refuse(405, "method_not_allowed", allow="POST", retry_after="1")
    assert (b"allow", b"POST") in answered.headers
    assert (b"retry-after", b"1") in answered.headers
    assert json.loads(answered.body) == {"error": "method_not_allowed"}


def test_an_answer_is_never_stored_whatever_its_headers_say() -> None:
    headers = answer(200, b"{}", [("Cache-Control", "public"), ("X-More", "1")]).headers
    assert [value for name, value in headers if name == b"cache-control"] == [b"no-store"]
    assert (b"x-more", b"1") in headers


@pytest.mark.parametrize(
    ("key", "good"),
    [("k", True), ("!~", True), ("k" * 255, True), ("k" * 256, False), ("", False), ("a b", False), ("é", False)],
)
def test_an_idempotency_key_is_visible_ascii(key: str, good: bool) -> None:
    assert (IDEMPOTENCY_KEY.fullmatch(key) is not None) is good
