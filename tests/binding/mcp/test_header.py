"""What MCP's headers say (MCP 2026-07-28, Streamable HTTP; RFC 9110 sections 8.3 and 12.5.1)."""

import pytest

from forecourt.binding.mcp.header import decoded_name, encoded_name, is_json, takes_json


@pytest.mark.parametrize(
    "content_type", ["application/json", "Application/JSON; charset=UTF-8", 'application/json;charset="utf-8"']
)
def test_json_in_utf_8_is_the_one_form_of_request(content_type: str) -> None:
    assert is_json(content_type)


@pytest.mark.parametrize(
    "content_type",
    [None, "", "text/plain", "application/json-seq", "application/json; charset=latin-1", "text/application/json"],
)
def test_another_type_is_no_form_of_request(content_type: str | None) -> None:
    assert not is_json(content_type)


@pytest.mark.parametrize(
    "accept", [None, "application/json", "text/event-stream, application/json;q=0.1", "*/*", "application/*; q=1"]
)
def test_an_answer_in_json_is_taken(accept: str | None) -> None:
    assert takes_json(accept)


def test_long_headers_are_read_and_not_remembered() -> None:
    assert takes_json("text/html, " * 1000 + "application/json")
    assert not takes_json("text/html, " * 1000 + "text/plain")
    assert not is_json("application/json;" + " " * 1000)


@pytest.mark.parametrize("accept", ["", "text/event-stream", "text/html, image/*", "application/jsonx"])
def test_an_answer_in_json_is_not_taken(accept: str) -> None:
    assert not takes_json(accept)


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("aap_lead_submit", "aap_lead_submit"),
        ("aap://dealer/profile", "aap://dealer/profile"),
        ("größe", "=?base64?Z3LDtsOfZQ==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("two\r\nlines", "=?base64?dHdvDQpsaW5lcw==?="),
        ("=?base64?YWFw?=", "=?base64?PT9iYXNlNjQ/WVdGdz89?="),
    ],
)
def test_a_name_travels_in_a_form_that_any_text_fits(text: str, header: str) -> None:
    assert encoded_name(text) == header
    assert decoded_name(header) == text


@pytest.mark.parametrize(
    "header", ["=?base64?YWFw*?=", "=?base64?YWF?=", "=?base64?YWG=?=", "=?base64?/w==?=", "=?base64?YQ?="]
)
def test_a_broken_form_is_no_name(header: str) -> None:
    assert decoded_name(header) is None


@pytest.mark.parametrize("header", ["=?base64?=", "=?BASE64?YWFw?=", "?base64?YWFw?="])
def test_what_only_looks_like_the_form_is_a_name(header: str) -> None:
    assert decoded_name(header) == header


def test_no_header_is_no_name() -> None:
    assert decoded_name(None) is None
