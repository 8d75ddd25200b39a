"""Cards are read with patience, and an agent that is no dealer is told apart."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.client.simulated import CARD_URL, SITE, URIS, card

from forecourt.a2a import FailureKind
from forecourt.client.card import choose, read_card
from forecourt.client.failure import DealerError


def test_a_card_of_one_contract_is_read() -> None:
    found = read_card(CARD_URL, card("3.1"))
    assert found.name == "Example Motors"
    assert list(found.contracts) == ["3.1"]
    assert found.skills == {"inventory.search"}
    assert found.endpoint() == f"{SITE}/a2a"
    assert found.raw == card("3.1")


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2", "1.3", "3.1"])
def test_every_extension_uri_is_known(version: str) -> None:
    assert choose(read_card(CARD_URL, card(version)), None).version == version


def test_the_newest_contract_in_common_is_chosen_from_an_old_card_with_several() -> None:
    found = read_card(CARD_URL, card("1.0", "1.2", "1.1"))
    assert choose(found, None).version == "1.2"
    assert choose(found, "1.0").version == "1.0"
    with pytest.raises(DealerError, match=r"contract 3\.1 is not offered: the dealer offers 1\.2, 1\.1, 1\.0"):
        choose(found, "3.1")


def test_a_contract_that_nobody_here_speaks_is_said_so() -> None:
    payload = card("3.1")
    payload["capabilities"]["extensions"][0]["uri"] = "https://autoagentprotocol.org/extensions/aap/v4.0"
    with pytest.raises(DealerError, match=r"no contract in common: the dealer offers 4\.0"):
        choose(read_card(CARD_URL, payload), None)


@pytest.mark.parametrize("tail", ["/", ".0"])
def test_small_liberties_with_an_extension_uri_are_taken(tail: str) -> None:
    payload = card("1.1")
    payload["capabilities"]["extensions"][0]["uri"] += tail
    assert list(read_card(CARD_URL, payload).contracts) == ["1.1"]


@pytest.mark.parametrize(
    "uri",
    ["https://evil.example.com/extensions/aap/v1.1", URIS["1.1"] + "/x", "http://autoagentprotocol.org/extensions/aap/v1.1",
     "https://autoagentprotocol.org/extensions/aap/v1", "https://autoagentprotocol.org/extensions/aap/v1.1\n"],
)  # fmt: skip
def test_another_extension_makes_no_dealer(uri: str) -> None:
    payload = card()
    payload["capabilities"]["extensions"] = [{"uri": uri}]
    with pytest.raises(DealerError, match="Example Motors is no AAP dealer: its extensions are") as caught:
        read_card(CARD_URL, payload)
    assert caught.value.kind is FailureKind.BINDING_MISMATCH


def test_an_agent_without_extensions_is_no_dealer() -> None:
    payload = card()
    del payload["capabilities"]
    with pytest.raises(DealerError, match="it declares no extensions"):
        read_card(CARD_URL, payload)


@pytest.mark.parametrize("payload", [[], "text", None, {}, {"a": 1}])
def test_what_is_no_card_is_said_to_be_none(payload: Any) -> None:
    with pytest.raises(DealerError, match="no agent card"):
        read_card(CARD_URL, payload)


def test_a_card_from_before_a2a_1_0_names_its_endpoint_at_the_top() -> None:
    payload = card("1.0", url=f"{SITE}/old")
    del payload["supportedInterfaces"]
    assert read_card(CARD_URL, payload).endpoint() == f"{SITE}/old"


@pytest.mark.parametrize(
    ("interfaces", "endpoint"),
    [
        ([{"url": "/grpc", "protocolBinding": "GRPC"}, {"url": "/a", "protocolBinding": "JSONRPC"}], "/a"),
        ([{"url": "/old", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
          {"url": "/new", "protocolBinding": "JSONRPC", "protocolVersion": "1.0.2"}], "/new"),
        ([{"url": "/a"}], "/a"),
    ],
)  # fmt: skip
def test_the_endpoint_is_the_first_for_json_rpc(interfaces: list[dict[str, str]], endpoint: str) -> None:
    payload = card()
    payload["supportedInterfaces"] = interfaces
    assert read_card(CARD_URL, payload).endpoint() == SITE + endpoint


def test_a_card_without_such_an_endpoint_is_said_so() -> None:
    payload = card()
    payload["supportedInterfaces"] = [{"url": "/x", "protocolBinding": "HTTP+JSON"}]
    with pytest.raises(DealerError, match="no JSON-RPC endpoint"):
        read_card(CARD_URL, payload).endpoint()


def test_partial_skills_and_unknown_members_are_no_hindrance() -> None:
    payload = card("1.1", novelty={"a": 1})
    payload["skills"] = [{"id": "inventory.search"}, {"id": "wash.car"}, {"name": "nameless"}, "text"]
    assert read_card(CARD_URL, payload).skills == {"inventory.search"}


def test_a_name_steers_no_terminal() -> None:
    assert read_card(CARD_URL, card(name="\x1b[2JEvil\n")).name == "\ufffd[2JEvil\ufffd"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["name", "capabilities", "extensions", "uri", "skills", "supportedInterfaces", "url", "params"]
                ),
                inner,
            )
        ),
        max_leaves=12,
    )
)
def test_whatever_json_a_card_is_it_is_read_or_refused(payload: Any) -> None:
    try:
        found = read_card(CARD_URL, payload)
    except DealerError:
        return
    assert found.contracts


def test_a_card_as_python_reads_it_from_text_is_the_same() -> None:
    assert read_card(CARD_URL, json.loads(json.dumps(card()))).contracts.keys() == {"3.1"}
