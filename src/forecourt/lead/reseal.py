"""Leads that an older key sealed, or none, sealed anew under the newest: before a key can be thrown away.

Done in small transactions, each of which leaves every lead readable, beside servers that take leads meanwhile. Killed
at any moment, the next run goes on with what is left.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from forecourt.lead.outbox import sealed_places
from forecourt.lead.sealing import Sealer, SealError
from forecourt.store import LeadFields, Outbox

__all__ = ["Resealed", "reseal"]

_BATCH: Final = 200
"""How many leads one transaction changes: others that write wait for it."""
_MOST_REASONS: Final = 5


@dataclass(frozen=True, slots=True)
class Resealed:
    """How many leads were sealed anew, how many are left, and why some of these cannot be opened."""

    done: int
    left: int
    reasons: tuple[str, ...] = ()


async def reseal(store: Outbox, sealer: Sealer, tell: Callable[[int], None] = lambda _: None) -> Resealed:
    """Seal everything that the newest key has not sealed; `tell` is called with the leads done so far.

    Each value is opened again before it is written. Raises SealError where there is no key, and StoreError.
    """
    beginning = sealer.beginning
    done, after = 0, ""
    reasons: dict[str, None] = {}
    while found := await store.lead_fields(after, _BATCH, beginning):
        changes = []
        for old in found:
            try:
                changes.append((old, _anew(old, sealer)))
            except SealError as error:
                if len(reasons) < _MOST_REASONS:
                    reasons[str(error)] = None
        done += await store.exchange_lead_fields(changes)
        after = found[-1].lead_id
        tell(done)
    return Resealed(done, await store.count_lead_fields(beginning), tuple(reasons))


def _anew(old: LeadFields, sealer: Sealer) -> LeadFields:
    at_business, at_grant = sealed_places(old.lead_id)
    # A lead that was purged has nothing there, and keeps nothing there.
    business = _value(old.business, at_business, sealer) if old.business else b""
    return LeadFields(old.lead_id, business, _value(old.grant, at_grant, sealer))


def _value(stored: bytes, place: str, sealer: Sealer) -> bytes:
    if sealer.is_current(stored):
        return stored
    plain = sealer.open(stored, place)
    sealed = sealer.seal(plain, place)
    if sealer.open(sealed, place) != plain:
        raise SealError("a value did not open as it was sealed")
    return sealed
