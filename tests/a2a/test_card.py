"""`forecourt.a2a.card`: the agent card of A2A v1.0 (sections 4.4 to 4.6)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecourt.a2a import (
    A2AError,
    AgentCard,
    AgentExtension,
    AgentInterface,
    AgentProvider,
    AgentSkill,
    ErrorCode,
    api_key_scheme,
    http_auth_scheme,
    mtls_scheme,
    oauth2_client_credentials_scheme,
    open_id_connect_scheme,
)

EXTENSION = "https://autoagentprotocol.org/extensions/aap/v3.1"
CARD = AgentCard(
    name="Demo Toyota",
    description="Sells cars.",
    version="1.0.0",
    interfaces=(
        AgentInterface("https://dealer.example.com/v0/a2a", "JSONRPC", "0.3"),
        AgentInterface("https://dealer.example.com/grpc", "GRPC", "1.0"),
        AgentInterface("https://dealer.example.com/a2a", tenant="north"),
    ),
    skills=(
        AgentSkill(
            "inventory.search",
            "Inventory search",
            "Finds vehicles.",
            tags=("inventory",),
            input_modes=("application/json",),
            output_modes=("application/json",),
            security_requirements=({"key": ()},),
        ),
    ),
    extensions=(AgentExtension(EXTENSION, "AAP 3.1", required=True, params={"version": "3.1.0"}),),
    provider=AgentProvider("Example Motors", "https://dealer.example.com"),
    documentation_url="https://dealer.example.com/docs",
    icon_url="https://dealer.example.com/icon.png",
    security_schemes={
        "key": api_key_scheme("X-API-Key"),
        "bearer": http_auth_scheme("Bearer", "JWT", "A token."),
        "oauth": oauth2_client_credentials_scheme("https://dealer.example.com/oauth/token", {"lead": "Send leads"}),
        "oidc": open_id_connect_scheme("https://dealer.example.com/.well-known/openid-configuration"),
        "tls": mtls_scheme(),
    },
    security_requirements=({"key": ()}, {"oauth": ("lead",), "tls": ()}),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["uri", "id", "url", "name", "extensions", "schemes", "list", "params", "tags"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=10,
)
MEMBERS = [*CARD.to_payload(), "signatures"]


@pytest.mark.requirement("RPC-OPTIONAL-NOT-NEEDED")
def test_a_card_is_written_in_the_form_of_a2a_1_0() -> None:
    payload = CARD.to_payload()
    assert payload["supportedInterfaces"][2] == {
        "url": "https://dealer.example.com/a2a",
        "protocolBinding": "JSONRPC",
        "protocolVersion": "1.0",
        "tenant": "north",
    }
    assert payload["capabilities"] == {
        "streaming": False,
        "pushNotifications": False,
        "extendedAgentCard": False,
        "extensions": [{"uri": EXTENSION, "description": "AAP 3.1", "required": True, "params": {"version": "3.1.0"}}],
    }
    assert payload["securityRequirements"] == [
        {"schemes": {"key": {"list": []}}},
        {"schemes": {"oauth": {"list": ["lead"]}, "tls": {"list": []}}},
    ]
    assert payload["securitySchemes"]["key"] == {"apiKeySecurityScheme": {"location": "header", "name": "X-API-Key"}}
    assert payload["skills"][0]["inputModes"] == ["application/json"]


@pytest.mark.parametrize(
    "retired", ["url", "protocolVersion", "preferredTransport", "additionalInterfaces", "security"]
)
def test_no_member_of_a2a_0_3_is_written(retired: str) -> None:
    assert retired not in CARD.to_payload()


def test_optional_members_that_are_unset_are_left_out() -> None:
    card = AgentCard("a", "b", "1", [AgentInterface("https://dealer.example.com/a2a")], [])
    assert set(card.to_payload()) == {
        "name", "description", "version", "supportedInterfaces", "capabilities", "skills",
        "defaultInputModes", "defaultOutputModes",
    }  # fmt: skip


def test_a_card_that_is_read_again_is_the_same_card() -> None:
    payload = CARD.to_payload()
    card = AgentCard.from_payload(payload)
    assert card == CARD
    assert card.raw is payload


def test_an_extension_a_skill_and_an_interface_are_found_by_name() -> None:
    extension = CARD.extension(EXTENSION)
    assert extension is not None
    assert extension.params == {"version": "3.1.0"}
    assert CARD.extension("https://autoagentprotocol.org/extensions/aap/v1.1") is None
    assert CARD.skill("inventory.search") is CARD.skills[0]
    assert CARD.skill("lead.submit") is None
    assert CARD.interface() is CARD.interfaces[2]
    assert CARD.interface("HTTP+JSON") is None


def test_a_patch_version_of_an_interface_is_its_minor_version_and_a_longer_number_is_not() -> None:
    interfaces = [{"url": "https://a.example.com", "protocolBinding": "JSONRPC", "protocolVersion": v}
                  for v in ("1.01", "1.0.2")]  # fmt: skip
    card = AgentCard.from_payload({"supportedInterfaces": interfaces})
    assert card.interface() is card.interfaces[1]


def test_unreadable_and_nameless_entries_are_passed_over() -> None:
    card = AgentCard.from_payload(
        {
            "name": 7,
            "supportedInterfaces": [None, {"protocolBinding": "JSONRPC"}, {"url": "https://a.example.com"}],
            "capabilities": {"extensions": [{"uri": 1}, {"uri": EXTENSION, "required": "yes", "params": 3}]},
            "skills": ["x", {"id": "lead.submit", "tags": ["a", 1]}],
            "securityRequirements": [1, {"schemes": {"key": None}}],
            "unheardOf": True,
        }
    )
    assert card.name == ""
    assert [interface.url for interface in card.interfaces] == ["https://a.example.com"]
    assert card.extensions == (AgentExtension(EXTENSION),)
    assert card.skills == (AgentSkill("lead.submit", "", "", ("a",)),)
    assert card.security_requirements == ({"key": ()},)
    assert card.raw is not None
    assert card.raw["unheardOf"] is True


@pytest.mark.parametrize("payload", [None, [], "card", 1])
def test_what_is_no_object_is_no_card(payload: object) -> None:
    with pytest.raises(A2AError) as caught:
        AgentCard.from_payload(payload)
    assert caught.value.code == ErrorCode.INVALID_AGENT_RESPONSE


@given(st.dictionaries(st.sampled_from(MEMBERS), JSON))
def test_any_object_is_read_as_a_card_that_can_be_written(payload: dict[str, Any]) -> None:
    card = AgentCard.from_payload(payload)
    assert AgentCard.from_payload(card.to_payload()) == card
