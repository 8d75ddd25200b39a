"""The configured deliveries: read whole before anything starts, opened with secrets from outside of the file."""

import json
from pathlib import Path
from typing import Any

import pytest

from forecourt.lead.adf import ADFOptions
from forecourt.lead.outbox import Destination
from forecourt.server import ConfigError, create_app, load
from forecourt.server.deployment import Deployment
from forecourt.server.destinations import make_folders, open_targets, plan_targets, read_sealer

EMAIL = {"via": "email", "host": "mail.example.com", "sender": "a@example.com", "to": ["crm@example.com"]}
FOLDER = {"via": "folder", "path": "crm"}


def planned(folder: Path, deliveries: Any, **sections: Any) -> Any:
    """Return the targets of one seller with two rooftops."""
    profile = folder / "dealer.json"
    profile.write_text(json.dumps({"name": "Example", "rooftops": [{"name": "North"}, {"name": "South"}]}))
    dealer = {"id": "example", "profile": str(profile), "deliveries": deliveries}
    config = load(None, dealer={key: value for key, value in dealer.items() if value is not None}, **sections)
    return plan_targets(config, Deployment(config).sellers)


def test_every_table_is_a_destination_with_a_name_of_its_own(tmp_path: Path) -> None:
    found = planned(
        tmp_path,
        [
            EMAIL,
            {**EMAIL, "rooftop": "North", "format": "notice"},
            {**EMAIL, "name": "vin-solutions", "brand": "Example Network", "condition_element": True},
            {"via": "https", "url": "https://hook.example.com/", "events": True},
        ],
    )
    assert [each.destination for each in found] == [
        Destination("example/email"),
        Destination("example/email-2", "notice", "North"),
        Destination("example/vin-solutions", options=ADFOptions(brand="Example Network", condition_element=True)),
        Destination("example/https", "event"),
    ]
    assert dict(found[2].settings) == EMAIL
    assert {target.kind for target in open_targets(found).values()} == {"email", "https"}


def test_without_a_word_of_deliveries_leads_become_files_beside_the_database(tmp_path: Path) -> None:
    (default,) = planned(tmp_path, None, data=str(tmp_path / "data"))
    assert default.destination == Destination("example/folder")
    assert default.makes == tmp_path / "data" / "leads"
    make_folders([default])
    assert default.makes.stat().st_mode & 0o777 == 0o700
    assert list(open_targets([default])) == ["example/folder"]


def test_an_empty_list_is_nowhere_and_so_is_nothing_said_where_leads_are_encrypted(tmp_path: Path) -> None:
    assert planned(tmp_path, []) == []
    assert planned(tmp_path, None, leads={"encryption_key_env": "TEST_LEADS_KEY"}) == []


def test_the_demo_dealer_has_the_folder_and_each_seller_of_a_network_one_of_its_own(tmp_path: Path) -> None:
    config = load(None, data="d")
    (demo,) = plan_targets(config, Deployment(config).sellers)
    assert demo.makes == Path("d/leads")
    profile = tmp_path / "dealer.json"
    profile.write_text(json.dumps({"name": "Example", "rooftops": [{"name": "North"}]}))
    network = load(_network(tmp_path, profile), data="d")
    folders = [each.makes for each in plan_targets(network, Deployment(network).sellers)]
    assert folders == [Path("d/leads/a"), Path("d/leads/b")]


def _network(folder: Path, profile: Path) -> Path:
    file = folder / "forecourt.toml"
    file.write_text("".join(f'[[dealers]]\nid = "{name}"\nprofile = "{profile}"\n' for name in "ab"))
    return file


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"path": "crm"}, "via: "),
        ({"via": "pigeon"}, "via: must be one of email, folder, https"),
        ({"via": "folder"}, "path: is missing"),
        ({**FOLDER, "colour": "red"}, "colour: there is no such key"),
        ({**FOLDER, "rooftop": "West"}, "rooftop: the seller has no rooftop of this name"),
        ({**FOLDER, "format": "pdf"}, "format: "),
        ({**FOLDER, "format": "adf", "events": True}, "format: is of leads"),
        ({**FOLDER, "name": "a/b"}, "name: use up to 64 letters"),
        ({**FOLDER, "source": "\n"}, "source must be"),
        ({**EMAIL, "sender": "nobody"}, "sender: must be a plain ASCII address"),
        ({**EMAIL, "username": "u", "password_env": "TEST_NO_SUCH_VARIABLE"}, "password"),
    ],
)
def test_a_mistake_names_the_table_and_the_key_in_one_line(tmp_path: Path, table: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_targets(planned(tmp_path, [FOLDER | {"name": "first"}, table]))
    place = "dealer.deliveries[2]"
    assert str(caught.value).startswith(f"{place}{': ' if message.startswith('source') else '.'}{message}")
    assert "\n" not in str(caught.value)


def test_a_name_is_used_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"dealer\.deliveries\[2\]\.name: crm is used twice"):
        planned(tmp_path, [{**FOLDER, "name": "crm"}, {**FOLDER, "name": "crm"}])


def test_secrets_are_asked_for_when_the_server_is_made_and_not_by_other_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = tmp_path / "dealer.json"
    profile.write_text(json.dumps({"name": "Example", "rooftops": [{"name": "North"}]}))
    table = {**EMAIL, "username": "u", "password_env": "TEST_SMTP_PASSWORD"}
    dealer = {"id": "example", "profile": str(profile), "deliveries": [table]}
    config = load(None, dealer=dealer)
    monkeypatch.delenv("TEST_SMTP_PASSWORD", raising=False)
    Deployment(config)
    with pytest.raises(ConfigError, match="password_env"):
        create_app(config)
    monkeypatch.setenv("TEST_SMTP_PASSWORD", "x" * 12)
    create_app(config)


def test_a_key_that_is_not_there_or_is_none_stops_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    config = load(None, leads={"encryption_key_env": "TEST_LEADS_KEY"})
    monkeypatch.delenv("TEST_LEADS_KEY", raising=False)
    with pytest.raises(ConfigError, match=r"leads\.encryption_key_env: the environment has no TEST_LEADS_KEY"):
        create_app(config)
    monkeypatch.setenv("TEST_LEADS_KEY", "c2hvcnQ=")
    with pytest.raises(ConfigError, match=r"leads\.encryption_key_env: key 1 is not"):
        create_app(config)
    monkeypatch.setenv("TEST_LEADS_KEY", "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=")
    assert len(read_sealer(config).key_ids) == 1
    assert read_sealer(load(None)).key_ids == ()


def test_paths_of_deliveries_are_relative_to_the_file(tmp_path: Path) -> None:
    file = tmp_path / "forecourt.toml"
    file.write_text(
        '[dealer]\nid = "a"\nprofile = "p.json"\n[[dealer.deliveries]]\nvia = "folder"\npath = "crm"\n'
        '[[dealer.deliveries]]\nvia = "email"\npassword_file = "secret"\nca_file = "/ca.pem"\n'
    )
    deliveries = load(file).all_dealers[0].deliveries or ()
    assert [each.get("path") for each in deliveries] == [str(tmp_path / "crm"), None]
    assert deliveries[1]["password_file"] == str(tmp_path / "secret")
    assert deliveries[1]["ca_file"] == "/ca.pem"
