"""Contract 1.0 names the buyer's agent by a string, twice."""

from forecourt.client.dialect import dialect

MEMBERS = {"customer": {"first_name": "A"}, "consent": {"scope": ["lead_submission"]}, "source_agent": {"name": "x"}}


def test_the_agent_is_a_string_and_stands_in_the_grant_too() -> None:
    written = dialect("1.0").lead(MEMBERS, "k", None)
    assert written["source_agent"] == "x"
    assert written["consent"] == {"scope": ["lead_submission"], "source_agent": "x"}
    assert written["idempotency_key"] == "k"
    # What was given is not changed: it may be kept and sent to another dealer.
    assert MEMBERS["consent"] == {"scope": ["lead_submission"]}
    assert dialect("1.1").lead(MEMBERS, "k", None)["source_agent"] == {"name": "x"}


def test_an_agent_that_is_a_string_already_stays_one() -> None:
    assert dialect("1.0").lead({**MEMBERS, "source_agent": "y"}, "k", None)["consent"]["source_agent"] == "y"
    assert "source_agent" not in dialect("1.0").lead({"customer": {}}, "k", None)
