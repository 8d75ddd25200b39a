"""How a deployment stands: its stock, its imports, today's leads, what waits, and what needs somebody's attention.

Everything is read from outside of the server: from the database, from the disk and from the shared count of the limits.
Nothing of a shopper, no credential and no query of an address is in it.
"""

import json
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from forecourt.lead.seller import Seller
from forecourt.server.by_hand import by_hand_key
from forecourt.server.deployment import Deployment
from forecourt.store import PARKED, WAITING, Backlog, FeedState, Survey

__all__ = ["LIMITS_OUTAGE", "STALE", "age", "standing"]

STALE: Final = timedelta(hours=48)
"""How long ago a rooftop's last import may be."""
LIMITS_OUTAGE: Final = "counted by each process for itself: the shared count cannot be reached"
"""What `/readyz` says, too."""

_LONG_WAITING: Final = timedelta(hours=1)
_LEAST_FREE: Final = 1_000_000_000
"""Bytes of the disk under which leads may soon not be kept any more."""
_OVERDUE: Final = 3
"""After how many times its `every` a feed should have been looked at."""
_OVERDUE_LEAST: Final = timedelta(minutes=10)
_FAILED: Final = ("refused", "failed", "unreachable")
_COUNTS: Final = ("rows", "imported", "added", "changed", "unchanged", "removed", "refused", "left_out", "duplicate")


async def standing(
    deployment: Deployment, now: datetime, stale: timedelta = STALE, dealer_id: str | None = None
) -> dict[str, Any]:
    """Return how a deployment stands, as JSON values, of one seller if that is named.

    `attention` has a sentence for everything that needs somebody's. What is per rooftop, feed and target is as long as
    the configuration and the database make it. Nothing needs to be open. Raises StoreError; NoDatabaseError where no
    database is yet.
    """
    sellers = [each for each in deployment.sellers.values() if dealer_id in (None, each.dealer_id)]
    days = {each.dealer_id: _days(each, now) for each in sellers}
    found = await deployment.store.survey({day.start for of_seller in days.values() for day in of_seller.values()})
    disk = _disk(Path(deployment.config.data))
    reached = await deployment.admission.limit.answers()
    attention = [*_of_the_whole(found, disk, reached)]
    told: dict[str, Any] = {
        "at": _time(now),
        "attention": attention,
        "store": {
            "kind": deployment.config.store_address.partition(":")[0],
            "migration": found.applied[-1] if found.applied else None,
            "missing": list(found.missing),
            "unknown": found.unknown,
        },
        "disk": disk,
        "limits": {"shared": reached is not None, "reached": reached},
        "keys": {"accepted": deployment.config.access.keys, "open": found.keys, "revoked": found.keys_revoked},
        "pap": deployment.config.pap.enabled,
    }
    if found.missing:
        return told
    look = _Look(found, deployment.schedule.told(found.feeds, now), now, stale)
    dealers = [look.dealer(each, days[each.dealer_id]) for each in sellers]
    backlogs = [each for each in found.backlogs if dealer_id is None or _owner(each) == dealer_id]
    waiting = [each for each in backlogs if each.status == WAITING]
    told |= {
        "listings": sum(each["listings"] for each in dealers),
        "leads_today": sum(each["leads_today"] for each in dealers),
        "deliveries": {
            "waiting": sum(each.deliveries for each in waiting),
            "parked": sum(each.deliveries for each in backlogs if each.status == PARKED),
            "oldest_waiting_seconds": max((_seconds(now - each.since) for each in waiting), default=None),
        },
        "dealers": dealers,
    }
    attention += look.attention(backlogs, dealers)
    return told


def age(seconds: float) -> str:
    """Return a length of time in words, of its largest unit: "4 minutes"."""
    for unit, length, most in (("second", 1, 120), ("minute", 60, 120 * 60), ("hour", 3600, 48 * 3600)):
        if seconds < most:
            count = int(seconds // length)
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return f"{int(seconds // 86_400)} days"


@dataclass(frozen=True, slots=True)
class _Day:
    """The day that it is at a rooftop."""

    zone: str
    date: str
    start: datetime


def _days(seller: Seller, now: datetime) -> dict[str, _Day]:
    found = {}
    for name, hours in seller.hours.items():
        # A rooftop that does not say where it is has the day of UTC.
        local = now.astimezone(hours.zone or UTC)
        midnight = local.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
        zone = hours.zone.key if hours.zone is not None else "UTC"
        found[name] = _Day(zone, local.date().isoformat(), midnight.astimezone(UTC))
    return found


def _disk(folder: Path) -> dict[str, Any] | None:
    try:
        usage = shutil.disk_usage(folder)
    except OSError:
        # With another store than the embedded one there need not be such a folder.
        return None
    return {"folder": str(folder), "free_bytes": usage.free, "total_bytes": usage.total}


def _of_the_whole(found: Survey, disk: Mapping[str, Any] | None, reached: bool | None) -> Iterator[str]:
    if found.missing:
        yield f"the database is of an older version: {len(found.missing)} migrations are made when a server starts"
    if found.unknown:
        yield "the database is of a newer version than this command"
    if disk is not None and disk["free_bytes"] < _LEAST_FREE:
        yield f"the disk of {disk['folder']} has {disk['free_bytes'] // 1_000_000} MB left"
    if reached is False:
        yield f"limits are {LIMITS_OUTAGE}"


class _Look:
    """What was found, by seller."""

    def __init__(self, found: Survey, feeds: Sequence[dict[str, Any]], now: datetime, stale: timedelta) -> None:
        self._now, self._stale = now, stale
        self._stock: dict[str, dict[str, int]] = {}
        for each in found.stock:
            self._stock.setdefault(each.dealer_id, {})[each.rooftop] = each.listings
        self._leads = {(each.since, each.dealer_id, each.rooftop): each.leads for each in found.leads}
        self._states = {state.source: state for state in found.feeds}
        self._feeds: dict[str, list[dict[str, Any]]] = {}
        for feed in feeds:
            self._feeds.setdefault(feed["dealer_id"], []).append(feed)
        self._backlogs: dict[str, list[Backlog]] = {}
        for backlog in found.backlogs:
            self._backlogs.setdefault(_owner(backlog), []).append(backlog)

    def dealer(self, seller: Seller, days: Mapping[str, _Day]) -> dict[str, Any]:
        """Return how one seller stands."""
        dealer_id, names = seller.dealer_id, [str(each["name"]) for each in seller.profile["rooftops"]]
        by_hand = [
            self._by_hand(state, dealer_id, rooftop)
            for rooftop in (None, *names)
            if (state := self._states.get(by_hand_key(dealer_id, rooftop))) is not None
        ]
        feeds = [*self._feeds.get(dealer_id, ()), *by_hand]
        stock = self._stock.get(dealer_id, {})
        rooftops = [
            self._rooftop(name, stock.get(name, 0), feeds, days[name], self._leads_of(dealer_id, name, names, days))
            for name in names
        ]
        elsewhere = {name: count for name, count in stock.items() if name not in names}
        return {
            "dealer_id": dealer_id,
            "name": str(seller.profile["name"]),
            "listings": sum(stock.values()),
            "leads_today": sum(each["leads_today"] for each in rooftops),
            "rooftops": rooftops,
            **({"elsewhere": elsewhere} if elsewhere else {}),
            "feeds": feeds,
            "deliveries": [
                {
                    "target": each.target, "status": each.status, "deliveries": each.deliveries,
                    "oldest_seconds": _seconds(self._now - each.since), "reason": each.reason,
                }
                for each in self._backlogs.get(dealer_id, ())
            ],
        }  # fmt: skip

    def _leads_of(self, dealer_id: str, name: str, names: Sequence[str], days: Mapping[str, _Day]) -> int:
        """Return today's leads of a rooftop; those that name none are the first one's."""
        count = self._leads.get((days[name].start, dealer_id, name), 0)
        return count + (self._leads.get((days[name].start, dealer_id, None), 0) if name == names[0] else 0)

    def _rooftop(
        self, name: str, listings: int, feeds: Collection[Mapping[str, Any]], day: _Day, leads: int
    ) -> dict[str, Any]:
        of_it = [feed for feed in feeds if feed.get("rooftop") in (None, name) and "imported_at" in feed]
        newest = max(of_it, key=lambda feed: str(feed["imported_at"]), default=None)
        return {
            "rooftop": name,
            "listings": listings,
            "imported_at": newest["imported_at"] if newest else None,
            "age_seconds": newest["age_seconds"] if newest else None,
            "source": newest["source"] if newest else None,
            "leads_today": leads,
            "today": day.date,
            "timezone": day.zone,
        }

    def _by_hand(self, state: FeedState, dealer_id: str, rooftop: str | None) -> dict[str, Any]:
        report = json.loads(state.report or b"{}")
        told: dict[str, Any] = {
            "source": report.get("source", ""), "dealer_id": dealer_id, "by_hand": True, "outcome": state.outcome,
            "checked_at": _time(state.checked_at),
        }  # fmt: skip
        if rooftop is not None:
            told["rooftop"] = rooftop
        if state.imported_at is not None:
            told["imported_at"] = _time(state.imported_at)
            told["age_seconds"] = _seconds(self._now - state.imported_at)
        told |= {name: report[name] for name in (*_COUNTS, "problem") if name in report}
        return told

    def attention(self, backlogs: Sequence[Backlog], dealers: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        """Yield what needs attention: leads first, then what is to be fetched, then the stock."""
        for each in backlogs:
            waited = self._now - each.since
            why = f": {each.reason}" if each.reason else ""
            if each.status == PARKED:
                count = f"{each.deliveries} deliver{'y' if each.deliveries == 1 else 'ies'}"
                yield f"{count} to {each.target} parked, the oldest for {age(_seconds(waited))}{why}"
            elif waited > _LONG_WAITING:
                yield f"deliveries to {each.target} have been waiting for {age(_seconds(waited))}{why}"
        for dealer in dealers:
            for feed in dealer["feeds"]:
                yield from self._of_feed(feed)
        for dealer in dealers:
            for rooftop in dealer["rooftops"]:
                name = f"{dealer['dealer_id']}, {rooftop['rooftop']}"
                if not rooftop["listings"]:
                    yield f"{name}: nothing is in stock"
                elif rooftop["age_seconds"] is not None and rooftop["age_seconds"] > self._stale.total_seconds():
                    yield f"{name}: the last import was {age(rooftop['age_seconds'])} ago"

    def _of_feed(self, feed: Mapping[str, Any]) -> Iterator[str]:
        name = f"{feed['dealer_id']}, feed {feed['source']}"
        if feed["outcome"] in _FAILED:
            yield f"{name}: {feed['outcome']}: {feed.get('problem', '')}"
        if "every_seconds" not in feed:
            return
        if feed["outcome"] == WAITING:
            yield f"{name}: was never looked at; is a server running?"
            return
        passed = self._now - datetime.fromisoformat(feed["checked_at"])
        if passed > max(_OVERDUE * timedelta(seconds=feed["every_seconds"]), _OVERDUE_LEAST):
            yield f"{name}: was looked at {age(_seconds(passed))} ago; is a server running?"


def _owner(backlog: Backlog) -> str:
    """Return whose a target is: ids of sellers have no slash."""
    return backlog.target.partition("/")[0]


def _seconds(length: timedelta) -> int:
    return max(0, int(length.total_seconds()))


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
