"""The leads of one shopper, found by email address or phone number: every lead is opened and compared.

What would find them at once, a hash of the address, is deleted after a day, so that nobody else finds them either.
"""

import json
import re
import unicodedata
from dataclasses import dataclass
from typing import Final

from forecourt.lead.identity import person_keys
from forecourt.lead.outbox import sealed_places
from forecourt.lead.sealing import Sealer, SealError
from forecourt.store import Outbox

__all__ = ["MOST_FOUND", "Found", "leads_of"]

MOST_FOUND: Final = 10_000
_BATCH: Final = 500
_LEAST_DIGITS: Final = 7
_IN_BRACKETS: Final = re.compile(r"\(\s*0\s*\)")


@dataclass(frozen=True, slots=True)
class Found:
    """The ids of a shopper's leads, oldest first, and how many leads could not be opened to look."""

    lead_ids: tuple[str, ...]
    closed: int = 0
    reason: str = ""


async def leads_of(store: Outbox, sealer: Sealer, email: str | None, phone: str | None) -> Found:
    """Return the leads, at most `MOST_FOUND`, whose shopper gave this email address or this phone number.

    Emails are compared as duplicates are, phones by their last digits: a number is given with its country or without,
    and who asks to be forgotten is not to be told that nothing is there. Leads that were purged are nobody's. Raises
    ValueError for what is neither, and StoreError.
    """
    address = person_keys({"email": email}, "")
    readings = _readings(phone)
    if email is not None and (not address or "@" not in email):
        raise ValueError("an email address has an @")
    if phone is not None and len(_digits(phone)) < _LEAST_DIGITS:
        raise ValueError(f"a phone number has {_LEAST_DIGITS} digits at least")
    found: list[str] = []
    closed, reason, after = 0, "", ""
    while len(found) < MOST_FOUND and (batch := await store.lead_fields(after, _BATCH)):
        after = batch[-1].lead_id
        for fields in batch:
            if not fields.business:
                continue
            try:
                business = json.loads(sealer.open(fields.business, sealed_places(fields.lead_id)[0]))
            except SealError as error:
                closed, reason = closed + 1, str(error)
                continue
            customer = business["customer"]
            if person_keys({"email": customer.get("email")}, "") & address or _same(readings, customer.get("phone")):
                found.append(fields.lead_id)
    return Found(tuple(found[:MOST_FOUND]), closed, reason)


def _digits(phone: object) -> str:
    """Return the digits of a number, in ASCII, without the zeros that lead out of a country."""
    if not isinstance(phone, str):
        return ""
    found = (unicodedata.decimal(sign, None) for sign in phone)
    return "".join(str(digit) for digit in found if digit is not None).lstrip("0")


def _readings(phone: object) -> set[str]:
    """Return the digits of a number with and without a zero in brackets, which is dialled in some countries only.

    "+44 (0)20 7946 0123" is +442079460123, but "+39 (0)6 5550123" is +39065550123.
    """
    return {_digits(phone), _digits(_IN_BRACKETS.sub("", phone))} if isinstance(phone, str) else set()


def _same(readings: set[str], phone: object) -> bool:
    return any(
        min(len(digits), len(other)) >= _LEAST_DIGITS and (digits.endswith(other) or other.endswith(digits))
        for digits in readings
        for other in _readings(phone)
    )
