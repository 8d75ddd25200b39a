"""The official A2A SDK parses our agent cards with its own types, unknown members refused."""

import importlib
import os
from typing import Any

import pytest

from forecourt.a2a import (
    AgentCard,
    AgentExtension,
    AgentInterface,
    AgentProvider,
    AgentSkill,
    api_key_scheme,
    http_auth_scheme,
    mtls_scheme,
    oauth2_client_credentials_scheme,
    open_id_connect_scheme,
)

EXTENSION = "https://autoagentprotocol.org/extensions/aap/v3.1"


def _full_card() -> dict[str, Any]:
    return AgentCard(
        name="Demo Toyota",
        description="Sells cars.",
        version="1.0.0",
        interfaces=[AgentInterface("https://dealer.example.com/a2a", tenant="north")],
        skills=[
            AgentSkill(
                "inventory.search",
                "Inventory search",
                "Finds vehicles.",
                tags=["inventory"],
                examples=["A blue Civic"],
                input_modes=["application/json"],
                output_modes=["application/json"],
                security_requirements=[{"key": []}],
            )
        ],
        extensions=[AgentExtension(EXTENSION, "AAP 3.1", required=True, params={"skills": {"a": ["b"]}})],
        provider=AgentProvider("Example Motors", "https://dealer.example.com"),
        documentation_url="https://dealer.example.com/docs",
        icon_url="https://dealer.example.com/icon.png",
        security_schemes={
            "key": api_key_scheme("X-API-Key", "header", "A key."),
            "bearer": http_auth_scheme("Bearer", "JWT", "A token."),
            "oauth": oauth2_client_credentials_scheme(
                "https://dealer.example.com/oauth/token",
                {"lead": "Send leads"},
                metadata_url="https://dealer.example.com/.well-known/oauth-authorization-server",
            ),
            "oidc": open_id_connect_scheme("https://dealer.example.com/.well-known/openid-configuration"),
            "tls": mtls_scheme("A certificate."),
        },
        security_requirements=[{"key": []}, {"oauth": ["lead"], "tls": []}],
    ).to_payload()


def test_the_sdk_parses_our_card_strictly_and_writes_the_same_card_back() -> None:
    try:
        sdk_types = importlib.import_module("a2a.types")
        json_format = importlib.import_module("google.protobuf.json_format")
    except ModuleNotFoundError:
        reason = "a2a-sdk is not installed (it comes with the extra 'bench')"
        # Where every dependency should be there, a skip would hide that this was never tried.
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    payload = _full_card()
    parsed = json_format.ParseDict(payload, sdk_types.AgentCard(), ignore_unknown_fields=False)
    written = json_format.MessageToDict(parsed)
    assert written.pop("securityRequirements") == [
        # The SDK leaves empty lists out.
        {"schemes": {"key": {}}},
        {"schemes": {"oauth": {"list": ["lead"]}, "tls": {}}},
    ]
    assert written["skills"][0].pop("securityRequirements") == [{"schemes": {"key": {}}}]
    del payload["securityRequirements"], payload["skills"][0]["securityRequirements"]
    assert written == payload
