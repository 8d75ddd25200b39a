"""`--identity`: the buyer's commands as a personal agent, over PAP."""

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from tests.cli.shopping import printed, run
from tests.server_process import ServerFarm

from forecourt.cli._identity import identified

AGENT = "https://assistant.example.com/agent.json"


def written(folder: Path, key: "ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey", **more: object) -> str:
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "key.pem").write_bytes(pem)
    place = folder / "agent.json"
    place.write_text(json.dumps({"client_id": AGENT, "private_key": "key.pem", **more}))
    return str(place)


def test_the_demonstrations_agent_shops_with_the_file_that_the_server_writes(servers: ServerFarm) -> None:
    server = servers.get("demo@pap")
    chosen = (server.base_url, "--identity", str(server.folder / "data" / "pap-dev" / "agent.json"))
    assert "speaks\tAAP 3.1 over pap at https://dealer.localhost/api/openapi.json" in run("info", *chosen).stdout
    assert len(printed("search", *chosen, "--limit", "2", "--json")["vehicles"]) == 2
    assert printed("call", *chosen, "inventory.vehicle", '{"vin": "5YFB4MBE3RM000012"}', status=1)["code"] == (
        "VEHICLE_UNAVAILABLE"
    )
    refused = run("search", "https://dealer.example.com", *chosen[1:])
    assert refused.exit_code == 2
    assert "on this machine alone" in refused.stderr


def test_an_identity_of_ones_own_keeps_the_dealers_address(tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    url, options = identified(written(tmp_path, key, key_id="2026-01"), "https://dealer.example.com")
    assert url == "https://dealer.example.com"
    assert options.keys() == {"binding", "pap"}
    agent = options["pap"]
    assert (options["binding"], agent.client_id, agent.key_id) == ("pap", AGENT, "2026-01")
    assert agent.private_key.private_numbers() == key.private_numbers()
    assert not agent.allow_private_networks


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"client_id": 1, "private_key": "key.pem"}', "[" * 9999])
def test_what_is_no_identity_is_wrong_usage(tmp_path: Path, text: str) -> None:
    place = tmp_path / "agent.json"
    place.write_text(text)
    result = run("search", "https://dealer.example.com", "--identity", str(place))
    assert result.exit_code == 2
    assert 'is not a JSON object with "client_id"' in result.stderr


def test_a_key_of_another_kind_or_none_is_wrong_usage(tmp_path: Path) -> None:
    for key in (rsa.generate_private_key(65537, 2048), ec.generate_private_key(ec.SECP384R1())):
        result = run("search", "https://dealer.example.com", "--identity", written(tmp_path, key))
        assert result.exit_code == 2
        assert "holds no private key EC P-256" in result.stderr
    (tmp_path / "key.pem").unlink()
    assert "cannot be read" in run("search", "https://x.example", "--identity", str(tmp_path / "agent.json")).stderr


@pytest.mark.parametrize("more", [("--binding", "a2a"), ("--header", "X-API-Key: x")])
def test_an_identity_goes_with_no_other_binding_and_no_other_credentials(more: tuple[str, str]) -> None:
    result = run("search", "https://dealer.example.com", "--identity", "agent.json", *more)
    assert result.exit_code == 2
    assert "--identity" in result.stderr
