"""The leads of one shopper, found by email address or phone number: every lead is opened and compared.

What would find them at once, a hash of the address, is deleted after a day, so that nobody else finds them either.
"""

import json
from dataclasses import dataclass
from typing import Final

from forecourt.lead.identity import person_keys
from forecourt.lead.outbox import sealed_places
from forecourt.lead.sealing import Sealer, SealError
from forecourt.store import Outbox

__all__ = ["MOST_FOUND", "Found", "leads_of"]

MOST_FOUND: Final = 10_000
_BATCH: Final = 500


@dataclass(frozen=True, slots=True)
class Found:
    """The ids of a shopper's leads, oldest first, and how many leads could not be opened to look."""

    lead_ids: tuple[str, ...]
    closed: int = 0
    reason: str = ""


async def leads_of(store: Outbox, sealer: Sealer, email: str | None, phone: str | None) -> Found:
    """Return the leads, at most `MOST_FOUND`, whose shopper gave this email address or this phone number.

    They are compared as duplicates are. Leads that were purged are nobody's. Raises StoreError.
    """
    wanted = person_keys({"email": email, "phone": phone}, "")
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
            if person_keys(business["customer"], "") & wanted:
                found.append(fields.lead_id)
    return Found(tuple(found[:MOST_FOUND]), closed, reason)
