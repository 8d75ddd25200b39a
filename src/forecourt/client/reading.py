"""Reading what a dealer's failure says: every shape of every binding becomes one AAPError, A2AError or TransportError.

"Errors and retries", sections "Three envelopes", "A2A detail encoding" and "SDK error handling": the payload is found
by its types and never by its place, checked before it is trusted, and nothing of it is lost.
"""

import math
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from forecourt.a2a import ERROR_INFO_TYPE, A2AError, FailureKind
from forecourt.client.failure import Answer, TransportError
from forecourt.client.json_text import decode
from forecourt.errors import AAPError, Problem

__all__ = [
    "aap_error",
    "from_json_rpc",
    "from_metadata",
    "from_tool_result",
    "is_readable",
    "json_body",
    "status_failure",
    "unreadable",
]

AAP_DOMAIN: Final = "autoagentprotocol.org"
STRUCT_TYPE: Final = "type.googleapis.com/google.protobuf.Struct"

_ENTRIES_READ: Final = 64
_PROBLEMS_READ: Final = 100
_FAR_MS: Final = 10**12
_SCHEMA: Final = "error.schema.json"


def aap_error(value: Any, raw: Answer | None = None) -> AAPError | None:
    """Read an `aap.error` object; None for what is none, or breaks its schema.

    Unknown codes and unknown members are no breach: they are kept. Nor are details of another shape than the schema
    gives them; they stay in `received`.
    """
    if not isinstance(value, dict) or value.get("type") != "aap.error" or not is_readable(value):
        return None
    details = value.get("details")
    rest = dict(details) if isinstance(details, dict) else {}
    problems = _problems(rest.get("errors"))
    if problems:
        del rest["errors"]
    wait = _wait_ms(rest.get("retry_after_ms"))
    if wait is not None:
        del rest["retry_after_ms"]
    hint = rest.pop("hint") if isinstance(rest.get("hint"), str) else None
    error = AAPError(
        value["code"],
        value["message"],
        problems=problems,
        hint=hint,
        retry_after_ms=wait,
        details=rest,
        retryable=value["retryable"],
        error_id=value["error_id"],
        created_at=value["created_at"],
    )
    error.received = value
    error.raw = raw
    return error


def is_readable(value: Mapping[str, Any]) -> bool:
    """Tell whether an object fits the contract's error schema in all that a buyer acts upon.

    Passed over are codes that the schema does not list, members that it does not know, and the shape of details.
    """
    return not [
        problem
        for problem in _schemas().problems(_SCHEMA, value)
        if not (problem.location == "/code" and problem.keyword == "enum")
        and problem.keyword != "additionalProperties"
        and not problem.location.startswith("/details")
        and not (problem.location == "" and "`details`" in problem.error)
    ]


@cache
def _schemas() -> Any:
    from forecourt.contract import default_version
    from forecourt.contract.validation import SchemaSet

    return SchemaSet.load(default_version())


def _wait_ms(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _FAR_MS:
        return None
    return math.ceil(value)


def _problems(entries: Any) -> list[Problem]:
    """Return the entries of `details.errors`, or nothing where one cannot be read (they stay as they came then)."""
    if not isinstance(entries, list) or len(entries) > _PROBLEMS_READ:
        return []
    found = []
    for entry in entries:
        if not isinstance(entry, dict) or entry.keys() - {"instanceLocation", "keyword", "error"}:
            return []
        location, keyword, text = (entry.get(name, "") for name in ("instanceLocation", "keyword", "error"))
        if not (isinstance(location, str) and isinstance(keyword, str) and isinstance(text, str)):
            return []
        found.append(Problem(location, keyword, text))
    return found


def from_json_rpc(error: Any, raw: Answer | None = None) -> AAPError | A2AError:
    """Read the `error` member of a JSON-RPC answer: a skill's failure where one is told, else the protocol's.

    The payload may be `data` itself (1.1), an entry of an array (drafts of 2.0), or the value of a
    `google.protobuf.Struct` in an array (3.1), in any order and among any others. Where only an
    ErrorInfo is left, as adapters of older SDKs leave it, the failure is told from its metadata, if that has all of it.
    """
    protocol = A2AError.from_payload(error)
    protocol.raw = raw
    for candidate in _candidates(protocol.data):
        found = aap_error(candidate, raw)
        if found is not None:
            return found
    return _from_error_info(protocol.data, protocol.message, raw) or protocol


def _entries(data: Any) -> list[dict[str, Any]]:
    entries = data[:_ENTRIES_READ] if isinstance(data, list) else [data]
    return [entry for entry in entries if isinstance(entry, dict)]


def _candidates(data: Any) -> Iterator[Any]:
    """Yield what may be the payload, the likeliest first: by `@type`, then by `type` alone."""
    entries = _entries(data)
    for entry in entries:
        if str(entry.get("@type", "")).rpartition("/")[2] == STRUCT_TYPE.rpartition("/")[2]:
            yield entry.get("value")
    for entry in entries:
        if entry.get("type") == "aap.error":
            yield {name: value for name, value in entry.items() if name != "@type"}
        yield entry.get("value")


def _from_error_info(data: Any, message: str, raw: Answer | None) -> AAPError | None:
    for entry in _entries(data):
        metadata = entry.get("metadata")
        if entry.get("@type") == ERROR_INFO_TYPE and isinstance(metadata, dict):
            # Servers that are built on an SDK cannot choose the domain; the four members together are AAP's alone.
            reason = entry.get("reason") if entry.get("domain") == AAP_DOMAIN else None
            found = from_metadata(metadata, message, raw, reason)
            if found is not None:
                return found
    return None


def from_metadata(
    metadata: Mapping[str, Any], message: str, raw: Answer | None = None, reason: Any = None
) -> AAPError | None:
    """Read a failure from the metadata of AAP's ErrorInfo, strings all; None where they do not tell it.

    An answer that lost its details has lost the minimum wait with them: the header and the policy decide then.
    """
    found = aap_error(
        {
            "type": "aap.error",
            "error_id": metadata.get("error_id"),
            "code": metadata.get("code", reason),
            "message": message,
            "retryable": {"true": True, "false": False}.get(str(metadata.get("retryable")).lower()),
            "created_at": metadata.get("created_at"),
        },
        raw,
    )
    if found is not None:
        found.received = None
    return found


def from_tool_result(result: Mapping[str, Any], raw: Answer | None = None) -> AAPError | TransportError:
    """Read an MCP tool result that has `isError: true`: the structured error, else the same in a text content.

    HTTP 200 around it means nothing ("Retry without changing the outcome").
    """
    found = aap_error(result.get("structuredContent"), raw)
    content = result.get("content")
    for entry in _entries(content if isinstance(content, list) else []):
        if found is None and isinstance(entry.get("text"), str):
            try:
                found = aap_error(decode(entry["text"]), raw)
            except ValueError:
                continue
    return found or TransportError(
        FailureKind.UNREADABLE, "the tool failed and its result holds no readable aap.error", raw=raw
    )


def status_failure(answer: Answer) -> TransportError:
    """Return the failure that an HTTP status is, where nothing in the body says more."""
    status = answer.status
    if status in (401, 403):
        message = f"the dealer wants credentials (HTTP {status})" if status == 401 else "the dealer refuses (HTTP 403)"
        return TransportError(FailureKind.AUTH_REQUIRED, message, status=status, raw=answer)
    if 300 <= status < 400:
        message = f"the dealer redirects elsewhere (HTTP {status}), which is not followed"
        return TransportError(FailureKind.BAD_ENDPOINT, message, status=status, raw=answer)
    return TransportError(FailureKind.STATUS, f"the dealer answered HTTP {status}", status=status, raw=answer)


def unreadable(answer: Answer, what: str) -> TransportError:
    """Return the failure that an answer is which came and cannot be read."""
    return TransportError(FailureKind.UNREADABLE, what, status=answer.status, raw=answer)


def json_body(answer: Answer) -> Any:
    """Return the JSON of an answer; TransportError for an empty body, another media type, or no JSON."""
    kind = answer.media_type
    if kind and kind not in ("application/json", "text/plain") and not kind.endswith("+json"):
        raise unreadable(answer, "the answer is no JSON but of another media type")
    try:
        return decode(answer.body)
    except ValueError as error:
        raise unreadable(answer, "the answer is no JSON") from error
