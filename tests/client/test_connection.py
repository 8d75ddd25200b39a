"""From an address to a client: the options, the choice of a binding, and what is refused at once."""

import asyncio
from typing import Any

import pytest
from tests.client.simulated import CARD_URL, SITE, Scripted, card

from forecourt.client import CARDS, Client, DealerError, connect
from forecourt.client.card import read_card
from forecourt.client.connection import mcp_endpoint


def find(url: str, network: Scripted, **options: Any) -> Client:
    """Return a client, closed again."""

    async def whole() -> Client:
        client = await connect(url, transport=network, **options)
        await client.close()
        return client

    return asyncio.run(whole())


@pytest.mark.parametrize(
    "options", [{"binding": "grpc"}, {"binding": []}, {"binding": ["a2a", "x"]}, {"contract": "2.0"}]
)
def test_what_nobody_knows_is_refused_at_once(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"^(bindings|contracts) are "):
        connect(SITE, **options)


def test_a2a_comes_first_and_the_order_can_be_chosen() -> None:
    assert find(SITE, Scripted()).binding == "a2a"
    mcp = find(SITE, Scripted(), binding=["mcp", "a2a"])
    assert (mcp.binding, mcp.endpoint) == ("mcp", f"{SITE}/mcp")


def test_the_next_binding_is_taken_where_the_card_lacks_the_first() -> None:
    payload = card()
    payload["supportedInterfaces"] = [{"url": "/tools", "protocolBinding": "MCP"}]
    client = find(SITE, Scripted(pages={CARD_URL: payload}))
    assert (client.binding, client.endpoint) == ("mcp", f"{SITE}/tools")


def test_an_mcp_address_needs_no_card() -> None:
    network = Scripted()
    client = find(f"{SITE}/v1.1/mcp", network, binding="mcp")
    assert (client.binding, client.contract, client.endpoint) == ("mcp", "1.1", f"{SITE}/v1.1/mcp")
    assert client.card is None
    assert client.name == ""
    assert network.requests == []
    assert find(f"{SITE}/mcp", network, binding="mcp").contract == "3.1"
    with pytest.raises(DealerError, match=r"does not speak contract 9\.9"):
        find(f"{SITE}/v9.9/mcp", network, binding="mcp")


def test_an_mcp_endpoint_that_cannot_be_guessed_is_asked_for() -> None:
    with pytest.raises(DealerError, match="give its address itself"):
        mcp_endpoint(read_card(CARD_URL, card(endpoint="/rpc")))


def test_pap_needs_an_identity() -> None:
    with pytest.raises(DealerError, match="PAP needs an identity"):
        find(SITE, Scripted(), binding="pap")


def test_an_activation_error_makes_cards_be_asked_for_anew() -> None:
    options = connect(SITE, transport=Scripted()).settings
    assert options.on_stale_card == CARDS.clear
