"""Signatures: HMAC-SHA256 over the time, a dot and the body; old, altered and foreign ones are refused."""

import hashlib
import hmac
import os
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecourt.lead.delivery.signature import TOLERANCE, sign, verify_signature

SECRET = "a secret of the receiver's own"
BODY = b"<adf/>"
NOW = 1_777_894_800


def test_a_signature_is_what_the_page_says() -> None:
    digest = hmac.new(SECRET.encode(), b"1777894800.<adf/>", hashlib.sha256).hexdigest()
    assert sign(SECRET, BODY, NOW) == f"t=1777894800,v1={digest}"


def test_openssl_makes_the_same() -> None:
    if shutil.which("openssl") is None and os.environ.get("CI") != "true":
        pytest.skip("there is no openssl")
    made = subprocess.run(
        ["openssl", "dgst", "-sha256", "-hmac", SECRET], input=b"1777894800.<adf/>", capture_output=True, check=True
    )
    assert sign(SECRET, BODY, NOW).endswith(made.stdout.decode().split()[-1])


@given(st.binary(), st.text(st.characters(codec="utf-8"), min_size=1))
def test_what_was_signed_is_recognised(body: bytes, secret: str) -> None:
    assert verify_signature(secret, sign(secret, body, NOW), body, now=NOW)


@pytest.mark.parametrize("late", [0, 299, 300, -300])
def test_a_signature_holds_for_five_minutes_on_either_side(late: float) -> None:
    assert verify_signature(SECRET, sign(SECRET, BODY, NOW), BODY, now=NOW + late)


@pytest.mark.parametrize("late", [TOLERANCE + 1, -TOLERANCE - 1, float("nan"), float("inf")])
def test_an_old_signature_is_refused(late: float) -> None:
    assert not verify_signature(SECRET, sign(SECRET, BODY, NOW), BODY, now=NOW + late)


def test_the_clock_is_the_system_s_unless_another_is_given() -> None:
    assert not verify_signature(SECRET, sign(SECRET, BODY, 1_000_000), BODY)


GOOD = sign(SECRET, BODY, NOW)
DIGEST = GOOD.partition("v1=")[2]


@pytest.mark.parametrize(
    "header",
    [
        "",
        "t=1777894800",
        f"v1={DIGEST}",
        f"t=1777894801,v1={DIGEST}",
        f"t=1777894800,t=1777894800,v1={DIGEST}",
        f"t=1777894800,v1={DIGEST[:-1]}",
        f"t=1777894800,v1={DIGEST.upper()}",
        f"t=1777894800,v2={DIGEST}",
        f"t=-1777894800,v1={DIGEST}",
        f"t=1777894800.0,v1={DIGEST}",
        f"t=\u0661777894800,v1={DIGEST}",
        "t=1777894800,v1=",
        "t=1777894800,v1=\xe4\ud800",
        GOOD + "," * 2000,
    ],
)
def test_anything_else_is_refused(header: str) -> None:
    assert not verify_signature(SECRET, header, BODY, now=NOW)


def test_another_secret_or_body_is_refused() -> None:
    assert not verify_signature("another secret", GOOD, BODY, now=NOW)
    assert not verify_signature(SECRET, GOOD, BODY + b" ", now=NOW)


def test_a_sender_that_changes_secrets_may_send_both() -> None:
    both = f"t={NOW},v1={'0' * 64},v1={DIGEST}"
    assert verify_signature(SECRET, both, BODY, now=NOW)


def test_versions_to_come_are_passed_over() -> None:
    assert verify_signature(SECRET, f"{GOOD}, v2=abc", BODY, now=NOW)
