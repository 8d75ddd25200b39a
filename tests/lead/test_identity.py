"""The same person, the same vehicle (CONTRACTS.md section 6, duplicates)."""

import hashlib
import json
import re
import subprocess
import sys
import unicodedata
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecourt.lead.identity import person_keys, vehicle_key

SELLER = "demo-toyota"


def same_person(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return bool(person_keys(one, SELLER) & person_keys(other, SELLER))


def test_emails_are_compared_without_case_and_surrounding_spaces() -> None:
    assert same_person({"email": "Ada.Lovelace@Example.COM "}, {"email": "ada.lovelace@example.com"})
    assert same_person({"email": "STRASSE@example.com"}, {"email": "straße@example.com"})
    assert not same_person({"email": "ada@example.com"}, {"email": "ada@example.org"})


@given(st.from_regex(r"\A[^@\s]{1,20}@example\.com\Z"), st.text(min_size=1))
def test_a_key_is_the_digest_of_the_parts_as_json(email: str, seller: str) -> None:
    # Keys are kept for a day and compared with new ones, so their form may not change.
    folded = unicodedata.normalize("NFC", email.strip().casefold())
    digest = hashlib.sha256(json.dumps([seller, "email", folded]).encode()).hexdigest()
    assert person_keys({"email": email}, seller) == {digest}


def test_phones_are_compared_by_number() -> None:
    assert same_person({"phone": "+1 (415) 555-0123"}, {"phone": "+14155550123"})
    assert same_person({"phone": "+44 (0)20 7946 0123"}, {"phone": "+442079460123"})
    assert not same_person({"phone": "+14155550123"}, {"phone": "+14155550124"})


def test_a_phone_that_is_no_number_is_compared_by_its_digits() -> None:
    # +999 is no country's code.
    assert same_person({"phone": "+999 123-456"}, {"phone": "+999123456"})
    assert same_person({"phone": "+999123456"}, {"phone": "+٩٩٩١٢٣٤٥٦"})
    assert not same_person({"phone": "+999123456"}, {"phone": "+999123457"})


def test_the_same_email_or_the_same_phone_makes_the_same_person() -> None:
    first = {"first_name": "Ada", "last_name": "Lovelace", "email": "ada@example.com"}
    both = {"first_name": "A.", "last_name": "LOVELACE", "email": "ADA@example.com", "phone": "+14155550123"}
    third = {"first_name": "Ada", "last_name": "King", "phone": "+14155550123"}
    assert same_person(first, both)
    assert same_person(both, third)
    assert not same_person(first, third)


def test_the_same_name_alone_makes_no_same_person() -> None:
    name = {"first_name": "Ada", "last_name": "Lovelace"}
    assert not same_person({**name, "email": "a@example.com"}, {**name, "email": "b@example.com"})


@pytest.mark.parametrize("customer", [{}, {"email": "  "}, {"phone": "none"}, {"email": None, "phone": 5}])
def test_nobody_to_compare_with_has_no_key(customer: Mapping[str, Any]) -> None:
    assert person_keys(customer, SELLER) == frozenset()


def test_keys_are_digests_and_differ_between_sellers_and_between_kinds() -> None:
    customer = {"email": "4155550123", "phone": "+14155550123"}
    keys = person_keys(customer, SELLER)
    assert len(keys) == 2
    assert all(re.fullmatch(r"[0-9a-f]{64}", key) for key in keys)
    assert not keys & person_keys(customer, "demo-honda")


def test_the_parts_of_a_key_cannot_run_into_each_other() -> None:
    assert not person_keys({"email": "x"}, 'a", "email') & person_keys({"email": 'email", "x'}, "a")


@given(st.text(), st.text())
def test_any_text_has_keys(email: str, phone: str) -> None:
    assert len(person_keys({"email": email, "phone": phone}, SELLER)) <= 2


def test_the_numbering_plans_are_loaded_only_when_a_phone_is_compared() -> None:
    code = (
        "import sys, forecourt.lead.identity as identity\n"
        "identity.person_keys({'email': 'ada@example.com'}, 'demo')\n"
        "sys.exit('phonenumbers' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_a_resolved_listing_is_the_vehicle_whatever_named_it() -> None:
    assert vehicle_key({"vin": "1HGCV1F30NA123456"}, "L1") == vehicle_key({"stock": "S-9"}, "L1")
    assert vehicle_key({"vin": "1HGCV1F30NA123456"}, "L1") != vehicle_key({"vin": "1HGCV1F30NA123456"}, "L2")


def test_a_vin_is_compared_without_case_spaces_and_hyphens() -> None:
    assert vehicle_key({"vin": " 1hgcv1f30-na123456"}, None) == vehicle_key({"vin": "1HGCV1F30NA123456"}, None)
    assert vehicle_key({"vin": "1HGCV1F30NA123456", "make": "Honda"}, None) == "vin:1HGCV1F30NA123456"


def test_a_description_is_compared_without_case_accents_and_spare_spaces() -> None:
    plain = vehicle_key({"year": 2024, "make": "Citroen", "model": "C5 Aircross"}, None)
    assert plain == vehicle_key({"year": 2024.0, "make": "CITROËN", "model": " C5   Aircross "}, None)
    assert plain != vehicle_key({"year": 2023, "make": "Citroen", "model": "C5 Aircross"}, None)
    assert plain != vehicle_key({"year": 2024, "make": "Citroen", "model": "C5 Aircross", "trim": "Feel"}, None)


def test_parts_of_a_description_stay_apart() -> None:
    assert vehicle_key({"make": "a|b"}, None) != vehicle_key({"make": "a", "model": "b"}, None)
    assert vehicle_key({"make": "a"}, None) != vehicle_key({"model": "a"}, None)


@pytest.mark.parametrize("vehicle", [None, {}, {"body": "suv", "mileage": 12}, {"make": " ", "vin": "-"}])
def test_no_vehicle_in_particular_is_none(vehicle: Mapping[str, Any] | None) -> None:
    assert vehicle_key(vehicle, None) == "none"


@given(st.dictionaries(st.sampled_from(["vin", "year", "make", "model", "trim"]), st.text() | st.integers()))
def test_a_vehicle_key_is_short_whatever_is_described(vehicle: dict[str, Any]) -> None:
    assert len(vehicle_key(vehicle, None)) <= 80
