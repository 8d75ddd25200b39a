"""`forecourt leads`: what came in and what became of it, over a database with leads in it."""

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner, Result

from forecourt.cli import leads as module
from forecourt.cli import main
from forecourt.lead.adf import check
from forecourt.lead.status import APPOINTMENT_STATUSES, LEAD_STATUSES
from forecourt.lead.submit import Stock, submit
from forecourt.model import LeadRequest
from forecourt.server import load
from forecourt.server.deployment import Deployment
from forecourt.store import Delivery, Outcome

KEY: Final = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
GRANT: Final = {
    "granted_at": "2026-05-04T11:59:00-07:00",
    "allowed_channels": ["email"],
    "consent_text": "Write to me. \u00fc",
    "scope": ["lead_submission"],
}


def business(name: str, **parts: Any) -> dict[str, Any]:
    """Return the lead of one shopper."""
    return {
        "customer": {"first_name": name, "last_name": "Quartermain", "email": f"{name}@example.com"},
        "consent": GRANT,
        "source_agent": {"name": "example-agent"},
        **parts,
    }


class Dealer:
    """A seller's configuration and the leads that it has."""

    def __init__(self, folder: Path, more: str = "") -> None:
        self.folder = folder
        week = {day: {"open": "00:00", "close": "23:45"} for day in DAYS}
        rooftop = {"name": "Main", "timezone": "America/Chicago", "schedules": [{"name": "sales", "value": week}]}
        (folder / "dealer.json").write_text(json.dumps({"name": "Example", "rooftops": [rooftop]}))
        (folder / "crm").mkdir()
        self.config = folder / "forecourt.toml"
        self.config.write_text(
            'data = "data"\n[dealer]\nid = "example"\nprofile = "dealer.json"\n'
            '[[dealer.deliveries]]\nvia = "folder"\npath = "crm"\n'
            '[[dealer.deliveries]]\nvia = "folder"\nname = "events"\npath = "crm"\nevents = true\n' + more
        )

    def take(self, lead: dict[str, Any], age: timedelta = timedelta()) -> str:
        """Take a lead and return its id."""

        async def run() -> str:
            deployment = Deployment(load(self.config))
            await deployment.store.open()
            now = datetime.now(UTC) - age
            seller = deployment.sellers["example"]
            receipt = await submit(
                deployment.store, seller, LeadRequest(lead), Stock(), None, now, deployment.dispatch()
            )
            await deployment.store.close()
            lead_id: str = json.loads(receipt)["data"]["lead_id"]
            return lead_id

        return asyncio.run(run())

    def settle(self, status: Any, reason: str | None = None) -> None:
        """Let everything that waits end so."""

        async def run() -> None:
            deployment = Deployment(load(self.config))
            await deployment.store.open()
            now = datetime.now(UTC)
            held: Sequence[Delivery] = await deployment.store.claim_deliveries("w", now, now + timedelta(hours=1), 99)
            for each in held:
                await deployment.store.settle_delivery(each, Outcome(status, now, None, reason))
            await deployment.store.close()

        asyncio.run(run())

    def run(self, *arguments: str, **environment: str) -> Result:
        """Run `forecourt leads` in this process."""
        environment = {"FORECOURT_CONFIG": str(self.config), **environment}
        return CliRunner().invoke(main, ["leads", *arguments], env=environment)

    def json(self, *arguments: str, **environment: str) -> Any:
        """Run it and read what it prints."""
        result = self.run(*arguments, "--json", **environment)
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)


@pytest.fixture
def dealer(tmp_path: Path) -> Dealer:
    return Dealer(tmp_path)


def soon() -> str:
    """Return tomorrow noon by the rooftop's clock, or near it: always open."""
    return (datetime.now(UTC) + timedelta(days=1)).replace(hour=18, minute=0, second=0, microsecond=0).isoformat()


def test_no_lead_is_said_in_a_line(dealer: Dealer) -> None:
    assert dealer.run("list").stdout == "no lead has come in\n"
    assert dealer.json("list") == []


def test_a_list_shows_the_newest_first_and_nothing_of_the_shoppers(dealer: Dealer) -> None:
    first = dealer.take(business("Zephyrine"))
    second = dealer.take(business("Thaddeus", appointment={"appointment_type": "sales", "appointment_at": soon()}))
    dealer.settle("parked", "refused")
    result = dealer.run("list")
    header, *lines = [line.split("\t") for line in result.stdout.splitlines()]
    assert header == ["lead", "received", "status", "appointment", "rooftop", "deliveries"]
    assert [line[0] for line in lines] == [second, first]
    assert lines[0][2:] == ["received", "sales confirmed", "Main", "3 parked"]
    assert lines[1][2:] == ["received", "", "Main", "2 parked"]
    assert "Zephyrine" not in result.stdout
    assert [each["lead_id"] for each in dealer.json("list", "--limit", "1")] == [second]
    assert dealer.run("list", "--dealer", "other").exit_code == 2


def test_a_lead_is_shown_with_its_grant_as_it_came_its_deliveries_and_its_history(dealer: Dealer) -> None:
    lead_id = dealer.take(business("Zephyrine", message="Is it\x1b[2J still there?"))
    dealer.settle("parked", "the mail server cannot be reached")
    dealer.run("status", lead_id, "working")
    found = dealer.json("show", lead_id)
    assert json.loads(found["grant"]) == GRANT
    assert "\u00fc" in found["grant"]
    assert found["lead"]["customer"]["email"] == "Zephyrine@example.com"
    assert [(each["target"], each["kind"], each["status"], each["reason"]) for each in found["deliveries"]] == [
        ("example/folder", "adf", "parked", "the mail server cannot be reached"),
        ("example/events", "event", "parked", "the mail server cannot be reached"),
        ("example/events", "event", "waiting", None),
    ]
    assert [(each["previous"], each["status"]) for each in found["history"]] == [
        (None, "received"),
        ("received", "working"),
    ]
    assert all(datetime.fromisoformat(each["changed_at"]).tzinfo for each in found["history"])
    text = dealer.run("show", lead_id).stdout
    assert "Zephyrine@example.com" in text
    assert found["grant"] in text
    assert "parked, 1 attempts: the mail server cannot be reached" in text
    assert "\x1b" not in text


def test_a_lead_is_exported_as_adf_and_as_json(dealer: Dealer) -> None:
    lead_id = dealer.take(business("Zephyrine"))
    xml = dealer.run("export", lead_id).stdout_bytes
    assert check(xml) == []
    assert lead_id.encode() in xml
    whole = json.loads(dealer.run("export", lead_id, "--format", "json").stdout)
    assert (whole["lead"], json.loads(whole["grant"])) == (business("Zephyrine"), GRANT)


def test_a_delivery_is_made_due_again(dealer: Dealer) -> None:
    lead_id = dealer.take(business("Zephyrine"))
    dealer.settle("delivered")
    assert dealer.run("resend", lead_id).stdout == f"{lead_id}: 1 delivery is due now\n"
    assert [each["status"] for each in dealer.json("show", lead_id)["deliveries"]] == ["waiting", "delivered"]
    assert dealer.json("resend", lead_id, "--to", "events") == {"lead_id": lead_id, "deliveries": 1}
    nobody = dealer.run("resend", lead_id, "--to", "other")
    assert (nobody.exit_code, nobody.stderr) == (1, f"forecourt: {lead_id} has no delivery to this target\n")


def test_a_status_is_set_and_a_second_time_changes_nothing(dealer: Dealer) -> None:
    lead_id = dealer.take(business("Z", appointment={"appointment_type": "sales", "appointment_at": soon()}))
    result = dealer.run("status", lead_id, "working", "--appointment", "cancelled")
    assert result.stdout.splitlines()[0] == f"{lead_id}: received -> working"
    assert result.stdout.splitlines()[1].endswith(": confirmed -> cancelled")
    assert dealer.run("status", lead_id, "working").stdout == f"{lead_id}: it is so already\n"
    moved = dealer.json("status", lead_id, "--appointment", "confirmed", "--at", "2030-05-04T11:00:00-05:00")
    assert [(each["previous"], each["status"]) for each in moved] == [("cancelled", "confirmed")]
    assert dealer.json("show", lead_id)["appointment"]["start"] == "2030-05-04T16:00:00+00:00"


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("status", "ID"), 2, "name a status"),
        (("status", "ID", "sold"), 2, "is not one of"),
        (("status", "ID", "--appointment", "completed"), 1, "asks for no appointment"),
        (("status", "ID", "working", "--at", "2030-05-04T11:00:00-05:00"), 2, "--at is for"),
        (("status", "ID", "--appointment", "confirmed", "--at", "noon"), 2, "--at: not an RFC 3339"),
        (("show", "lead_0"), 1, "there is no lead of this id"),
        (("export", "lead_0"), 1, "there is no lead of this id"),
        (("resend", "lead_0"), 1, "there is no lead of this id"),
        (("purge",), 2, "--older-than"),
        (("purge", "--older-than", "0d"), 2, "--older-than"),
        (("purge", "--older-than", "1y"), 2, "--older-than"),
        (("purge", "--older-than", "\u0661d"), 2, "--older-than"),
    ],
)
def test_a_mistake_is_one_line_and_changes_nothing(
    dealer: Dealer, arguments: tuple[str, ...], status: int, said: str
) -> None:
    lead_id = dealer.take(business("Z"))
    result = dealer.run(*[lead_id if each == "ID" else each for each in arguments])
    assert (result.exit_code, len(result.stderr.splitlines())) == (status, 1)
    assert said in result.stderr
    assert dealer.json("list")[0]["status"] == "received"


def test_purging_says_what_it_would_do_and_then_does_it(dealer: Dealer) -> None:
    old = dealer.take(business("Zephyrine"), timedelta(days=400))
    ancient = dealer.take(business("Thaddeus"), timedelta(days=2000))
    young = dealer.take(business("Basil"), timedelta(days=300))
    counted = {"leads": 2, "proofs": 1, "keys": 0}
    assert dealer.json("purge", "--older-than", "365d", "--dry-run") == {**counted, "dry_run": True}
    assert len(dealer.json("list")) == 3
    assert dealer.json("purge", "--older-than", "365d") == {**counted, "dry_run": False}
    assert {each["lead_id"] for each in dealer.json("list")} == {old, young}
    found = dealer.json("show", old)
    assert found["lead"] is None
    assert json.loads(found["grant"]) == GRANT
    assert found["purged_at"] is not None
    assert "its personal data was deleted" in dealer.run("show", old).stdout
    assert dealer.json("show", young)["lead"]["customer"]["first_name"] == "Basil"
    gone = dealer.run("show", ancient)
    assert "no lead of this id" in gone.stderr
    for arguments in (("resend", old), ("export", old)):
        refused = dealer.run(*arguments)
        assert (refused.exit_code, "personal data was deleted" in refused.stderr) == (1, True)
    assert dealer.run("purge", "--older-than", "365").stdout.splitlines()[0] == "personal data of 0 leads deleted"
    for file in (dealer.folder / "data").iterdir():
        assert b"Zephyrine@" not in file.read_bytes()


def test_an_encrypted_lead_is_read_with_the_key_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dealer = Dealer(tmp_path, '[leads]\nencryption_key_env = "TEST_LEADS_KEY"\n')
    monkeypatch.setenv("TEST_LEADS_KEY", KEY)
    lead_id = dealer.take(business("Zephyrine"))
    assert dealer.json("show", lead_id)["lead"]["customer"]["first_name"] == "Zephyrine"
    for file in (tmp_path / "data").iterdir():
        assert b"Zephyrine" not in file.read_bytes()
        assert b"Write to me" not in file.read_bytes()
    assert dealer.run("list").exit_code == 0
    other = dealer.run("show", lead_id, TEST_LEADS_KEY=KEY.replace("MDEy", "MDEz"))
    assert (other.exit_code, "the lead cannot be opened: the key " in other.stderr) == (1, True)
    monkeypatch.delenv("TEST_LEADS_KEY")
    without = dealer.run("show", lead_id)
    assert (without.exit_code, "the environment has no TEST_LEADS_KEY" in without.stderr) == (2, True)


def test_the_words_of_the_command_are_those_of_the_rules() -> None:
    assert module._LEAD_WORDS == LEAD_STATUSES
    assert module._APPOINTMENT_WORDS == APPOINTMENT_STATUSES


def test_a_database_that_cannot_be_opened_is_one_line_and_status_1(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(
        main, ["leads", "list", "--data", str(tmp_path / "file" / "data")], env={"FORECOURT_CONFIG": ""}
    )
    assert result.exit_code == 1
    assert result.stderr.startswith("forecourt: the leads cannot be reached: ")


def test_one_lead_is_purged_by_its_id(dealer: Dealer) -> None:
    first, second = dealer.take(business("Zephyrine")), dealer.take(business("Thaddeus"))
    assert dealer.run("purge", "--lead", first, "--dry-run").stdout == "personal data of 1 lead would be deleted\n"
    assert dealer.json("purge", "--lead", first) == {"leads": 1, "proofs": 0, "keys": 0, "dry_run": False}
    assert dealer.json("show", first)["lead"] is None
    assert dealer.json("show", second)["lead"] is not None
    again = dealer.run("purge", "--lead", first, "--lead", "lead_none")
    assert (again.exit_code, again.stderr) == (1, "forecourt: there is no lead of this id\n")


@pytest.mark.parametrize(
    "arguments", [(), ("--lead", "x", "--older-than", "1d"), ("--lead", "x", "--dealer", "example"), ("--lead", "")]
)
def test_what_is_to_be_purged_is_said_in_one_way(dealer: Dealer, arguments: tuple[str, ...]) -> None:
    assert dealer.run("purge", *arguments).exit_code == 2


def test_the_leads_of_a_shopper_are_found_by_email_and_by_phone(dealer: Dealer) -> None:
    one = dealer.take(business("Zephyrine"))
    two = business("Thaddeus", message="Call me.")
    two["customer"]["phone"] = "+14155550123"
    other = dealer.take(two)
    line = dealer.run("find", "--email", "ZEPHYRINE@example.com ").stdout
    assert line.split("\t")[::3] == [one, "example"]
    assert "Zephyrine" not in line
    # With its country or without: a shopper who asks to be forgotten is there.
    for phone in ("(415) 555-0123", "0415 555 0123", "5550123"):
        assert [each["lead_id"] for each in dealer.json("find", "--phone", phone)] == [other]
    assert dealer.json("find", "--phone", "+1 (415) 555-0124") == []
    for wrong in (("--phone", "123"), ("--phone", "none"), ("--email", "zephyrine")):
        refused = dealer.run("find", *wrong)
        assert (refused.exit_code, f"{wrong[0]}: " in refused.stderr) == (2, True)
    assert [each["lead_id"] for each in dealer.json("find", "--phone", "+1 (415) 555-0123")] == [other]
    dealer.run("purge", "--lead", one)
    assert dealer.run("find", "--email", "zephyrine@example.com").stdout == "no lead is of this shopper\n"
    assert dealer.run("find").exit_code == 2
    assert dealer.run("find", "--email", "").exit_code == 2


def test_leads_are_sealed_anew_under_the_newest_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dealer = Dealer(tmp_path, '[leads]\nencryption_key_env = "TEST_LEADS_KEY"\n')
    new = KEY.replace("MDEy", "MDEz")
    monkeypatch.setenv("TEST_LEADS_KEY", KEY)
    lead_id = dealer.take(business("Zephyrine"))
    monkeypatch.setenv("TEST_LEADS_KEY", f"{new} {KEY}")
    assert dealer.json("reseal") == {"done": 1, "left": 0, "reasons": []}
    assert dealer.run("reseal").stdout == "0 leads encrypted again, 0 left\n"
    monkeypatch.setenv("TEST_LEADS_KEY", new)
    assert json.loads(dealer.json("show", lead_id)["grant"]) == GRANT
    assert [each["lead_id"] for each in dealer.json("find", "--email", "zephyrine@example.com")] == [lead_id]
    # The old key alone opens nothing any more, and says which key is missing.
    monkeypatch.setenv("TEST_LEADS_KEY", KEY)
    for command in (["reseal"], ["find", "--phone", "+14155550123"]):
        closed = dealer.run(*command)
        assert closed.exit_code == 1
        assert "is missing" in closed.stderr.splitlines()[-1]


def test_without_a_key_there_is_nothing_to_seal_with(dealer: Dealer) -> None:
    result = dealer.run("reseal")
    assert (result.exit_code, "leads.encryption_key_env is not set" in result.stderr) == (2, True)
