"""`forecourt lead`: consent is asked on a terminal, and nothing is sent without it."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.cli.shopping import in_a_terminal, printed, run
from tests.client import hostile as acts
from tests.client.hostile import hostile

from forecourt.client import Disclosure, load_pending

SHOPPER = ("--first-name", "Jordan", "--last-name", "Lee", "--email", "jordan@example.com")


@pytest.fixture
def grant(tmp_path: Path) -> str:
    """A grant that was given before."""
    place = tmp_path / "grant.json"
    given = Disclosure("Demo Auto Group", ("email",)).granted(at=datetime.now(UTC))
    place.write_text(json.dumps(given.to_payload()))
    return str(place)


def test_without_a_terminal_and_without_a_grant_nothing_is_asked_for(demo: str) -> None:
    with hostile(demo) as server:
        result = run("lead", server.url, *SHOPPER, text="y\n")
        assert result.exit_code == 2
        assert "consent is asked on a terminal, and this is none" in result.stderr
        assert server.requests == []


def test_a_yes_on_the_terminal_sends_the_words_that_were_shown(demo: str) -> None:
    with hostile(demo) as server:
        arguments = ("--vin", "1G1FY6SW1NA000493", "--phone", "+14155550123", "--agent", "Example Assistant")
        status, shown = in_a_terminal("y\n", "lead", server.url, *SHOPPER, *arguments)
        payload = json.loads(server.posts[-1].body)["params"]["message"]["parts"][0]["data"]
    assert status == 0, shown
    words = payload["consent"]["consent_text"]
    assert words == (
        "Example Assistant may share my name, email address and phone number with Demo Auto Group, so that they "
        "contact me by email or by phone call about the 2022 Chevrolet Bolt EUV Premier (1G1FY6SW1NA000493). "
        "I can withdraw this consent at any time."
    )
    assert words in " ".join(shown.split())
    assert payload["consent"]["allowed_channels"] == ["email", "phone"]
    assert payload["source_agent"] == {"name": "Example Assistant"}
    assert "lead_" in shown
    assert "received" in shown


@pytest.mark.parametrize("answer", ["n\n", "\n", "\x04"])
def test_anything_but_a_yes_sends_nothing(demo: str, answer: str) -> None:
    with hostile(demo) as server:
        status, shown = in_a_terminal(answer, "lead", server.url, *SHOPPER)
        sent = [json.loads(post.body)["params"]["message"]["parts"][0]["data"]["type"] for post in server.posts]
    assert status == 1
    assert "Traceback" not in shown
    assert sent == ["dealer.information.request"]


def test_a_grant_from_a_file_stands_for_the_answer(demo: str, grant: str) -> None:
    receipt = printed("lead", demo, *SHOPPER, "--grant", grant, "--message", "Hello", "--json")
    assert receipt["status"] == "received"
    told = run("lead", demo, *SHOPPER, "--grant", grant, "--vin", "1G1FY6SW1NA000493", "--prefer", "email",
               "--appointment", "test_drive", "--key", "cli-key")  # fmt: skip
    lines = dict(line.split("\t", 1) for line in told.stdout.splitlines())
    assert lines["status"] == "received"
    assert lines["appointment"] == "requested"
    assert lines["key"] == "cli-key"


def test_a_lost_lead_is_kept_and_resumed_once(demo: str, grant: str, tmp_path: Path) -> None:
    place = str(tmp_path / "lead.json")
    nothing = acts.work_and_say(b"<html>", "200 OK", "text/html")
    with hostile(demo, nothing, nothing) as server:
        lost = run("lead", server.url, *SHOPPER, "--grant", grant, "--pending", place)
        assert lost.exit_code == 1
        key = load_pending(place).key
        receipt = run("lead", server.url, "--resume", place)
        assert receipt.exit_code == 0, receipt.output
        assert f"key\t{key}" in receipt.stdout.splitlines()
        bodies = [json.loads(post.body)["params"]["message"]["parts"][0]["data"] for post in server.posts]
    assert bodies == [bodies[0]] * 3
    assert not Path(place).exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "the dealer needs --first-name, --last-name, --email or --phone"),
        (SHOPPER[:4], "the dealer needs --email or --phone"),
        ((*SHOPPER, "--at", "2026-11-02T14:00:00-08:00"), "--at needs --appointment"),
        ((*SHOPPER, "--channel", "fax"), "'fax' is not one of"),
        ((*SHOPPER, "--grant", "/nowhere/grant.json"), "does not exist"),
    ],
)
def test_what_is_missing_or_wrong_is_said_before_anything_is_asked(
    demo: str, arguments: tuple[str, ...], said: str
) -> None:
    result = run("lead", demo, *arguments)
    assert result.exit_code == 2
    assert said in result.stderr


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"scope": ["everything"]}', "5"])
def test_a_grant_file_that_holds_none_is_refused(demo: str, tmp_path: Path, text: str) -> None:
    place = tmp_path / "grant.json"
    place.write_text(text)
    result = run("lead", demo, *SHOPPER, "--grant", str(place))
    assert result.exit_code == 2
    assert "holds no consent grant" in result.stderr


def test_a_file_to_resume_that_is_none_is_one_line(demo: str, tmp_path: Path) -> None:
    place = tmp_path / "notes.txt"
    place.write_text("hello")
    result = run("lead", demo, "--resume", str(place))
    assert result.exit_code == 1
    assert "is not a pending lead" in result.stderr


def test_a_refused_lead_is_told_with_what_to_do(demo: str, grant: str) -> None:
    result = run("lead", demo, *SHOPPER, "--grant", grant, "--vin", "5YFB4MBE3RM000012")
    assert result.exit_code == 1
    assert result.stderr.startswith("VEHICLE_UNAVAILABLE: ")
    assert "tell the buyer that this vehicle is gone" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--channel", "sms"), "--channel sms needs --phone"),
        (("--channel", "email", "--channel", "phone"), "--channel phone needs --phone"),
        (("--pending", "/nowhere/lead.json"), "--pending: there is no folder /nowhere"),
    ],
)
def test_what_cannot_be_sent_is_told_before_anybody_is_asked(demo: str, arguments: tuple[str, ...], said: str) -> None:
    with hostile(demo) as server:
        status, shown = in_a_terminal("y\n", "lead", server.url, *SHOPPER, *arguments)
        assert server.requests == []
    assert status == 2
    assert said in shown
    assert "agree" not in shown


def test_a_lead_that_is_pending_is_resumed_and_nobody_is_asked_again(demo: str, tmp_path: Path) -> None:
    pending = tmp_path / "lead.json"
    pending.write_text("{}")
    with hostile(demo) as server:
        status, shown = in_a_terminal("y\n", "lead", server.url, *SHOPPER, "--pending", str(pending))
        assert server.requests == []
    assert status == 1
    assert f"send it with --resume {pending}" in " ".join(shown.split())
    assert "agree" not in shown
