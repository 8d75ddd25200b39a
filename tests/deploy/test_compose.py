"""compose.yaml: what the Compose specification says of it, and what it must keep."""

import ipaddress
import json
import re
import sys
from typing import Any, Final

import pytest
from tests.deploy.shipped import DEPLOY, ROOT, check_configuration, read_yaml
from tests.interop.pypi import tool

from forecourt.server.serving import DRAIN_SECONDS

COMPOSE: Final[dict[str, Any]] = read_yaml("compose.yaml")[0]
SERVICES: Final[dict[str, dict[str, Any]]] = COMPOSE["services"]
OURS: Final = ("forecourt-1", "forecourt-2")
SAID: Final = {"FORECOURT_SITE": "dealer.example.com", "POSTGRES_PASSWORD": "secret"}
_VARIABLE: Final = re.compile(r"\$\{(\w+)(?::[?-][^}]*)?\}")
_CHECK: Final = """
import sys
from compose_spec import PyCompose
PyCompose.from_json(sys.argv[1]).validate()
"""


def filled(text: str) -> str:
    """Return a text with its variables put in, as Compose does."""
    return _VARIABLE.sub(lambda found: SAID.get(found[1], ""), text)


def seconds(duration: str) -> int:
    assert duration.endswith("s")
    return int(duration[:-1])


def test_it_is_as_the_compose_specification_says(request: pytest.FixtureRequest) -> None:
    checker = tool("compose-spec==0.2.1", request.config)
    ended = checker.run(sys.executable, "-c", _CHECK, filled(json.dumps(COMPOSE)))
    assert ended.returncode == 0, ended.stderr
    wrong = {**COMPOSE, "services": {"a": {"image": "a:1", "stop_grace_periods": "1s"}}}
    ended = checker.run(sys.executable, "-c", _CHECK, json.dumps(wrong))
    assert "stop_grace_periods" in ended.stderr


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_can_write_nothing_and_gain_nothing(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service.get("cap_add", []) == (["NET_BIND_SERVICE"] if name == "caddy" else [])
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "privileged" not in service
    assert not any("docker.sock" in str(volume) for volume in service.get("volumes", []))


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_comes_back_and_says_how_it_is(name: str) -> None:
    assert SERVICES[name]["restart"] == "unless-stopped"
    assert SERVICES[name]["healthcheck"]["test"][0] == "CMD"
    assert re.search(r":[\w.-]*\d", SERVICES[name]["image"]), "an image is pinned to a version"


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_waits_only_for_services_that_there_are(name: str) -> None:
    assert SERVICES[name].get("depends_on", {}).keys() <= SERVICES.keys()
    assert set(SERVICES[name]["networks"]) <= COMPOSE["networks"].keys()
    for volume in SERVICES[name].get("volumes", []):
        source = volume.split(":")[0]
        assert source in COMPOSE["volumes"] or (DEPLOY / source).is_file(), source


def test_only_the_proxy_is_reached_from_outside() -> None:
    assert [name for name, service in SERVICES.items() if "ports" in service] == ["caddy"]
    assert COMPOSE["networks"]["back"]["internal"] is True
    for name in ("postgres", "valkey"):
        assert list(SERVICES[name]["networks"]) == ["back"]
    assert "back" not in SERVICES["caddy"]["networks"]


def test_the_proxy_is_believed_by_its_address_and_nobody_else() -> None:
    address = SERVICES["caddy"]["networks"]["front"]["ipv4_address"]
    (network,) = COMPOSE["networks"]["front"]["ipam"]["config"]
    assert ipaddress.ip_address(address) in ipaddress.ip_network(network["subnet"])
    for name in OURS:
        assert json.loads(SERVICES[name]["environment"]["FORECOURT_SERVER__TRUSTED_PROXIES"]) == [address]
    assert SERVICES["caddy"]["environment"]["FORECOURT_UPSTREAMS"].split() == [f"{name}:8000" for name in OURS]


def test_requests_under_way_are_given_their_time() -> None:
    for name in (*OURS, "caddy"):
        assert seconds(SERVICES[name]["stop_grace_period"]) > DRAIN_SECONDS


def test_no_secret_stands_in_the_files() -> None:
    for service in SERVICES.values():
        for key, value in service.get("environment", {}).items():
            if re.search(r"PASSWORD|KEY|SECRET", key):
                assert _VARIABLE.fullmatch(value), key
    example = dict(
        line.split("=", 1)
        for line in (DEPLOY / "compose.env.example").read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    )
    used = set(_VARIABLE.findall((DEPLOY / "compose.yaml").read_text(encoding="utf-8")))
    assert used == example.keys()
    assert [key for key, value in example.items() if value] == ["FORECOURT_SITE"]


def test_the_configuration_that_it_mounts_is_good() -> None:
    environment = {key: filled(value) for key, value in SERVICES["forecourt-1"]["environment"].items()}
    del environment["FORECOURT_CONFIG"]
    said = check_configuration(DEPLOY / "forecourt.toml", environment)
    assert "good; serves 1 seller" in said
    assert SERVICES["forecourt-1"]["environment"] == SERVICES["forecourt-2"]["environment"]


def test_the_configuration_is_good_by_itself() -> None:
    assert "good; serves 1 seller" in check_configuration(DEPLOY / "forecourt.toml", {})


def test_the_image_is_built_from_our_dockerfile() -> None:
    build = SERVICES["forecourt-1"]["build"]
    assert (DEPLOY / build["context"]).resolve() == ROOT
    assert (ROOT / build["dockerfile"]).is_file()
    assert SERVICES["forecourt-1"]["image"] == SERVICES["forecourt-2"]["image"]


def test_the_proxy_is_of_a_release_that_the_page_on_tls_asks_for() -> None:
    asked = re.search(r"\(Caddy ([0-9.]+) or newer", (ROOT / "docs/operations/tls.md").read_text(encoding="utf-8"))
    pinned = re.fullmatch(r"caddy:(\d+\.\d+\.\d+)", str(SERVICES["caddy"]["image"]))
    assert asked is not None
    assert pinned is not None
    assert [*map(int, pinned[1].split("."))] >= [*map(int, asked[1].split("."))]
