"""The OpenAPI 3.1 description of the operations, made from the contract's own schemas.

Each skill is one operation whose `operationId` is the skill's id; every status that can come back is there, with what
comes with it and an example.
"""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final
from urllib.parse import urldefrag, urljoin

from forecourt.binding.pap import STATUSES
from forecourt.contract import Contract, Skill
from forecourt.errors import CODES, AAPError

__all__ = ["ERRORS", "PROTOCOL_ERRORS", "description"]

_ANYWHERE: Final = ("UNSUPPORTED_SKILL", "SCHEMA_VALIDATION_FAILED", "RATE_LIMITED", "INTERNAL_ERROR")
_BY_SELLER: Final = ("DEALER_NOT_FOUND", "MISSING_REQUIRED_FIELD")
_BY_VEHICLE: Final = ("VEHICLE_NOT_FOUND", "VEHICLE_UNAVAILABLE")

ERRORS: Final[Mapping[str, tuple[str, ...]]] = {
    "dealer.information": (*_ANYWHERE, *_BY_SELLER),
    "inventory.facets": (*_ANYWHERE, "DEALER_NOT_FOUND", "UNSUPPORTED_FILTER"),
    "inventory.search": (
        *_ANYWHERE, "DEALER_NOT_FOUND", "UNSUPPORTED_FILTER", "UNSUPPORTED_SORT", "INVALID_CURSOR",
    ),
    "inventory.vehicle": (*_ANYWHERE, "DEALER_NOT_FOUND", *_BY_VEHICLE),
    "lead.submit": (
        *_ANYWHERE, *_BY_SELLER, *_BY_VEHICLE, "INVALID_CONDITION", "CONTACT_CONSENT_REQUIRED", "INVALID_CONSENT",
        "APPOINTMENT_TIME_UNAVAILABLE", "IDEMPOTENCY_CONFLICT",
    ),
}  # fmt: skip
"""The codes that a skill can answer with; every code is some skill's."""

PROTOCOL_ERRORS: Final[Mapping[int, tuple[str, str]]] = {
    400: ("invalid_request", "The request cannot be read: no JSON, two Authorization headers, a token in the address."),
    401: ("invalid_token", "The Session Token or its DPoP proof is refused; `WWW-Authenticate` says which."),
    413: ("request_too_large", "The body is longer, or slower, than this deployment takes."),
    415: ("unsupported_media_type", "The body must be application/json in UTF-8."),
}
"""What PAP itself answers, by status: its own form, never an `aap.error`."""

_OF_RETRIES: Final[Mapping[int, tuple[str, str]]] = {
    409: ("idempotency_key_conflict", "The Idempotency-Key came with another request in this Session."),
    503: ("temporarily_unavailable", "The first request under this Idempotency-Key is still under way."),
}
_ERROR_FILE: Final = "error.schema.json"
_EXAMPLE_ID: Final = "err_01jexample00000000000000000"
_EXAMPLE_TIME: Final = "2026-05-01T16:30:00.000Z"
_SUFFIX: Final = ".schema.json"


def description(contract: Contract, name: str, base: str) -> dict[str, Any]:
    """Return the document for the operations below `base`, an address without a trailing slash."""
    return {
        "openapi": "3.1.0",
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "info": {
            "title": f"{name}: dealer agent",
            "version": contract.version,
            "summary": f"The Auto Agent Protocol {contract.version} as PAP operations.",
            "description": (
                "Search this dealership's stock and submit leads with the shopper's consent. Start a signed-out Session"
                " at the authorization server that /.well-known/poppy.json names; every call carries its token and a"
                " fresh DPoP proof."
            ),
            "x-aap": {"extension_uri": contract.extension_uri, **contract.extension_params()},
        },
        "servers": [{"url": base}],
        "security": [{"session_token": [], "dpop_proof": []}],
        "paths": {f"/api/{skill.id}": {"post": _operation(contract, skill)} for skill in contract.skills.values()},
        "components": {
            "schemas": {**_schemas(contract), "refusal": _REFUSAL},
            "headers": {
                "retry_after": {
                    "description": "How many seconds to wait at least.",
                    "required": True,
                    "schema": {"type": "integer", "minimum": 1},
                },
                "challenge": {
                    "description": "PAP's challenge: the scheme DPoP and the error.",
                    "schema": {"type": "string"},
                    "example": 'DPoP error="invalid_token"',
                },
            },
            "securitySchemes": {
                "session_token": {
                    "type": "http",
                    "scheme": "DPoP",
                    "description": "A Session Token bound to the caller's key; it is refused as a Bearer token.",
                },
                "dpop_proof": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "DPoP",
                    "description": "A proof for this method and address, made anew for every call (RFC 9449).",
                },
            },
        },
    }


_REFUSAL: Final[Mapping[str, Any]] = {
    "title": "Refusal",
    "type": "object",
    "description": "What PAP itself refuses; a skill never ran.",
    "properties": {
        "error": {"type": "string", "description": "One word for what is wrong."},
        "error_description": {"type": "string", "description": "The same in a sentence."},
    },
    "required": ["error"],
}


def _operation(contract: Contract, skill: Skill) -> dict[str, Any]:
    request = json.loads(contract.schemas.text(skill.request_schema))
    shown = {f"example_{number}": {"value": each} for number, each in enumerate(request.get("examples", ()), start=1)}
    operation: dict[str, Any] = {
        "operationId": skill.id,
        "summary": skill.name,
        "description": skill.description,
        "tags": ["AAP"],
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": _ref(skill.request_schema), "examples": shown}},
        },
        "responses": {
            "200": {
                "description": f"The {skill.response_type}.",
                "content": {
                    "application/json": {
                        "schema": _ref(skill.response_schema),
                        "examples": {"example_1": {"value": _examples()[skill.id]}},
                    }
                },
            },
            **{str(status): answer for status, answer in _refusals(contract, skill)},
        },
    }
    if skill.writes:
        operation["parameters"] = [
            {
                "name": "Idempotency-Key",
                "in": "header",
                "required": False,
                "description": (
                    "A retry aid within one Session: the same request under the same key gets the first answer again"
                    " for a day. It does not replace the payload's `idempotency_key`, which decides across Sessions"
                    " and bindings."
                ),
                "schema": {"type": "string", "pattern": "^[!-~]{1,255}$", "minLength": 1, "maxLength": 255},
                "example": "b3a1f6de-8f2f-4c0a-9d55-2f3c7a1e9b10",
            }
        ]
    return operation


def _refusals(contract: Contract, skill: Skill) -> Iterable[tuple[int, dict[str, Any]]]:
    """Yield every other status of an operation with its response, by status."""
    codes: dict[int, list[str]] = {}
    for code in ERRORS[skill.id]:
        codes.setdefault(STATUSES[CODES[code].kind], []).append(code)
    protocol = {**PROTOCOL_ERRORS, **(_OF_RETRIES if skill.writes else {})}
    for status in sorted({*codes, *protocol}):
        schemas: list[dict[str, Any]] = []
        said: list[str] = []
        examples: dict[str, Any] = {}
        for code in codes.get(status, ()):
            said.append(f"`{code}`: {CODES[code].message}")
            error = AAPError(code, error_id=_EXAMPLE_ID, created_at=_EXAMPLE_TIME, retry_after_ms=_wait(code))
            examples[code] = {"value": contract.write_error(error)}
        if status in codes:
            schemas.append(_ref(_ERROR_FILE))
        if status in protocol:
            word, meaning = protocol[status]
            schemas.append({"$ref": "#/components/schemas/refusal"})
            said.append(f"`{word}`: {meaning}")
            examples[word] = {"value": {"error": word}}
        response: dict[str, Any] = {
            "description": " ".join(said),
            "content": {
                "application/json": {
                    "schema": schemas[0] if len(schemas) == 1 else {"oneOf": schemas},
                    "examples": examples,
                }
            },
        }
        if status in (429, 503):
            response["headers"] = {"Retry-After": {"$ref": "#/components/headers/retry_after"}}
        if status == 401:
            response["headers"] = {"WWW-Authenticate": {"$ref": "#/components/headers/challenge"}}
        yield status, response


def _wait(code: str) -> int | None:
    return 2000 if code == "RATE_LIMITED" else None


@cache
def _examples() -> dict[str, Any]:
    """Return an answer of each skill, by its id."""
    text = files("forecourt.server.pap").joinpath("example.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def _name(file: str) -> str:
    """Return the name of a schema among the components: `_primitives/address.schema.json` is `address`."""
    return file.rsplit("/", 1)[-1].removesuffix(_SUFFIX)


def _ref(file: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{_name(file)}"}


def _schemas(contract: Contract) -> dict[str, Any]:
    """Return the contract's schemas as components, their references to one another turned into the document's."""
    documents = {file: json.loads(contract.schemas.text(file)) for file in contract.schemas.files()}
    places = {document["$id"]: f"#/components/schemas/{_name(file)}" for file, document in documents.items()}
    needed = {skill.request_schema for skill in contract.skills.values()}
    needed |= {skill.response_schema for skill in contract.skills.values()} | {_ERROR_FILE}
    schemas: dict[str, Any] = {}
    ids = {document["$id"]: file for file, document in documents.items()}
    while needed:
        file = needed.pop()
        document = documents[file]
        found: set[str] = set()
        schemas[_name(file)] = _moved(document, document["$id"], places, found)
        needed |= {ids[home] for home in found if _name(ids[home]) not in schemas}
    return dict(sorted(schemas.items()))


def _moved(part: Any, base: str, places: Mapping[str, str], found: set[str]) -> Any:
    """Return a part of the document `base` with its references moved; `found` gathers the documents referred to."""
    if isinstance(part, list):
        return [_moved(item, base, places, found) for item in part]
    if not isinstance(part, dict):
        return part
    moved: dict[str, Any] = {}
    for key, value in part.items():
        if key == "$ref" and isinstance(value, str):
            home, pointer = urldefrag(urljoin(base, value))
            found.add(home)
            moved[key] = places[home] + pointer
        elif key not in ("$id", "$schema") or not isinstance(value, str):
            moved[key] = _moved(value, base, places, found)
    return moved
