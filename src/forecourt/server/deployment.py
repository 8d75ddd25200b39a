"""One running deployment: the store, the catalog, the sellers, the agent, and the contracts over them."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, MutableMapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from forecourt.agent import Agent, Caller
from forecourt.contract import Contract, Offer, contract_class, versions
from forecourt.contract.validation import SchemaSet
from forecourt.errors import AAPError
from forecourt.lead.calendar import AppointmentRules
from forecourt.lead.hours import OpeningHours
from forecourt.lead.outbox import Destination, Dispatch, Retry
from forecourt.lead.seller import Seller
from forecourt.model import (
    FLAG_FILTERS,
    MAX_FILTERS,
    MIN_FILTERS,
    SORT_FIELDS,
    TERM_FILTERS,
    Capabilities,
    Reply,
    Request,
    VehicleReference,
    listing_id,
)
from forecourt.server.admission import Admission
from forecourt.server.config import Appointments, Config, ConfigError
from forecourt.server.config_problem import ConfigProblem
from forecourt.server.connections import Connections
from forecourt.server.courier import Courier, Pace
from forecourt.server.destinations import make_folders, open_targets, plan_targets, read_sealer
from forecourt.server.inventory import Inventory
from forecourt.server.metrics import Reading
from forecourt.server.networks import Networks
from forecourt.server.observer import Observer
from forecourt.server.room import Room
from forecourt.server.schedule import FeedSchedule
from forecourt.server.upkeep import CursorUpkeep
from forecourt.store import StoredListing, open_store
from forecourt.vocabulary import Vocabulary, VocabularyError

__all__ = ["ALL_FILTERS", "Deployment", "every_mistake"]

ALL_FILTERS = (
    *TERM_FILTERS,
    *MIN_FILTERS,
    *MAX_FILTERS,
    *FLAG_FILTERS,
    "vin",
    "stock",
    "features_all",
    "features_any",
    "features_none",
)
"""Every filter of any contract; the free text query is switched by itself."""


_PROFILE_PROBLEMS: Final = 20
"""How many mistakes of one profile are told."""

_Made = TypeVar("_Made")

_TELL_SECONDS: Final = 1.0

_DEALER_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class Deployment:
    """Everything that requests share. Made from a configuration, opened once, closed once."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.vocabulary = _vocabulary(config)
        self.capabilities = _capabilities(config, self.vocabulary)
        offer = Offer(self.capabilities, frozenset(self.vocabulary.codes))
        self.contracts: Mapping[str, Contract] = {version: contract_class(version)(offer) for version in versions()}
        self.sellers = {seller.dealer_id: seller for seller in _sellers(config)}
        self.hosts = _hosts(config)
        self.name = config.server.name or _name(self.sellers.values())
        self.store = _store(config)
        self.inventory = Inventory(self.store, self.sellers)
        self._upkeep = CursorUpkeep(self.store)
        self.schedule = FeedSchedule(self.store, self.sellers, config.feeds, self.vocabulary)
        self._targets = plan_targets(config, self.sellers)
        self.courier: Courier | None = None
        self.admission = Admission(config.access, config.limits, self.store)
        self.observer = Observer(config.log, self._reading)
        refused = self.observer.metrics.refused
        self.connections = Connections(config.server, config.limits, self.admission.client_of, refused)
        self.room = Room(config.server.max_running, refused)
        self._agent: Agent | None = None
        self._telling: asyncio.Task[None] | None = None
        self.is_stopping = False
        """Whether no further requests are wished for; `/readyz` says so, and everything is still answered."""

    def _reading(self) -> Reading:
        """Return what the metrics show of this moment; nothing here waits."""
        feeds = self.schedule.details()
        outcomes = Counter(str(feed["outcome"]) for feed in feeds)
        ages = [feed["age_seconds"] for feed in feeds if feed.get("age_seconds") is not None]
        reading: dict[str, float | Mapping[str, float]] = {
            "listings": len(self.inventory.catalog()),
            "limits_outage": float(self.admission.limit.outage),
            "connections": self.connections.open,
            "requests_under_way": self.connections.under_way,
        }
        if feeds:
            reading["feeds"] = outcomes
        if self.courier is not None:
            reading["deliveries"] = self.courier.details()
        if ages:
            reading["oldest_import_seconds"] = max(ages)
        return reading

    def dispatch(self) -> Dispatch:
        """Return where leads go and what seals them. Raises ConfigError when the key is not in the environment."""
        destinations: dict[str, list[Destination]] = {}
        for planned in self._targets:
            destinations.setdefault(planned.dealer_id, []).append(planned.destination)
        return Dispatch(destinations, read_sealer(self.config))

    def prepare_leads(self) -> Courier:
        """Return what sends leads, with the secrets of its targets read. Raises ConfigError."""
        if self.courier is None:
            leads = self.config.leads
            dispatch = self.dispatch()
            retry = Retry(leads.first_retry_seconds, leads.give_up_hours * 3600, leads.most_attempts)
            pace = Pace(parallel=leads.parallel, lease=leads.lease_seconds)
            self.courier = Courier(self.store, dispatch, self.sellers, open_targets(self._targets), retry, pace)
            dispatch.wake = self.courier.wake
        return self.courier

    @property
    def agent(self) -> Agent:
        """The agent; there is one once the deployment is open."""
        if self._agent is None:
            raise AAPError("INTERNAL_ERROR", "The dealer agent is starting.")
        return self._agent

    async def run(self, request: Request, caller: Caller) -> Reply:
        """Have the agent answer a request, once there is room. Raises AAPError."""
        room = self.room
        if not room.enter_now():
            await room.enter()
        try:
            return await self.agent.run(request, caller)
        finally:
            room.leave()

    def refusal(self, scope: MutableMapping[str, Any], *, known_only: bool = False) -> AAPError | None:
        """Return the error for a request that is turned away before it is looked at, None for one that is not."""
        return self.room.refusal(scope) or self.admission.refusal(scope, known_only=known_only)

    @property
    def is_demo(self) -> bool:
        """Whether the packaged demo dealer is served."""
        return not self.config.all_dealers

    async def open(self) -> None:
        """Open the store, stock the demo dealer, build the catalog, begin to send leads. Raises StoreError, and
        ConfigError unless `prepare_leads` was called before.
        """
        courier = self.prepare_leads()
        await self.store.open()
        make_folders(self._targets)
        now = datetime.now(UTC)
        cursors = await self._upkeep.read()
        if self.is_demo:
            await self._stock_demo(now)
        await self.inventory.start()
        self._agent = Agent(
            self.sellers,
            self.inventory.catalog,
            self.store,
            cursors,
            self.capabilities,
            renew=self._upkeep.read,
            dispatch=courier.dispatch,
        )
        self._upkeep.start(self._agent)
        self.schedule.start()
        courier.start()
        if self.observer.metrics.is_shared:
            self._telling = asyncio.create_task(self._tell(), name="forecourt-metrics")

    async def _tell(self) -> None:
        """Tell the other processes, again and again, what the metrics show of this one."""
        while True:
            self.observer.metrics.refresh()
            await asyncio.sleep(_TELL_SECONDS)

    async def close(self) -> None:
        """Stop watching and close the store; what was begun is finished."""
        self._agent = None
        if self._telling is not None:
            self._telling.cancel()
            await asyncio.wait([self._telling])
            self.observer.metrics.refresh()
        if self.courier is not None:
            await self.courier.stop()
        await self.schedule.stop()
        await self._upkeep.stop()
        await self.inventory.stop()
        await self.admission.close()
        await self.store.close()

    async def _stock_demo(self, now: datetime) -> None:
        from forecourt.demo import DEALER_ID, stock

        today = now.date()
        rows = stored(stock.listings(today), self.vocabulary)
        await self.store.replace_listings(DEALER_ID, None, rows, now)
        departed = [
            VehicleReference(listing.get("vin"), listing.get("vehicle_id"), listing.get("stock"))
            for listing in stock.gone(today)
        ]
        await self.store.remember_departed(DEALER_ID, departed, now)


def every_mistake(config: Config, first: ConfigError) -> ConfigError:
    """Return all that keeps a configuration from being used, `first` what was found first.

    What rests on a part that is wrong itself, as feeds rest on their sellers, is not looked at.
    """
    found = list(first.problems)

    def look(make: Callable[[], _Made]) -> _Made | None:
        try:
            return make()
        except ConfigError as error:
            found.extend(problem for problem in error.problems if problem not in found)
        return None

    vocabulary = look(lambda: _vocabulary(config))
    if vocabulary is not None:
        look(lambda: _capabilities(config, vocabulary))
    look(lambda: _hosts(config))
    look(lambda: Networks(config.server.trusted_proxies, "server", "trusted_proxies"))
    look(lambda: _rules(config.appointments))
    look(lambda: _holidays(config.appointments))
    look(lambda: read_sealer(config))
    store = look(lambda: _store(config))
    if store is not None:
        look(lambda: Admission(config.access, config.limits, store))
    sellers = look(lambda: {seller.dealer_id: seller for seller in _sellers(config)})
    if sellers is not None:
        look(lambda: open_targets(plan_targets(config, sellers)))
        if store is not None and vocabulary is not None:
            look(lambda: FeedSchedule(store, sellers, config.feeds, vocabulary))
    return ConfigError(found)


def stored(listings: Iterable[Mapping[str, Any]], vocabulary: Vocabulary) -> Iterable[StoredListing]:
    """Return listings as they are kept: with the feature codes that their texts show, serialised once."""
    for listing in listings:
        codes = vocabulary.recognise(listing.get("features", ()))
        body = {**listing, "feature_codes": list(codes)} if codes else listing
        yield StoredListing(
            listing_id=listing_id(listing["dealer_id"], listing["vehicle_id"]),
            dealer_id=listing["dealer_id"],
            rooftop=listing["rooftop"],
            vin=listing.get("vin"),
            vehicle_id=listing["vehicle_id"],
            stock=listing.get("stock"),
            body=msgspec.json.encode(body),
        )


def _vocabulary(config: Config) -> Vocabulary:
    try:
        return Vocabulary.load(config.search.vocabulary)
    except (VocabularyError, OSError) as error:
        raise ConfigError(str(error), "search", "vocabulary") from error


def _capabilities(config: Config, vocabulary: Vocabulary) -> Capabilities:
    search = config.search
    wrong: list[ConfigProblem] = []
    for key, chosen, known in (
        ("filters_off", search.filters_off, ALL_FILTERS),
        ("features_off", search.features_off, vocabulary.codes),
        ("sort_fields_off", search.sort_fields_off, SORT_FIELDS),
    ):
        unknown = [name for name in chosen if name not in known]
        if unknown:
            wrong.append(ConfigProblem(("search", key), f"no such name: {', '.join(unknown)}"))
    if search.default_limit > search.max_limit:
        wrong.append(ConfigProblem(("search", "default_limit"), "must not be above search.max_limit"))
    if wrong:
        raise ConfigError(wrong)
    return Capabilities(
        filters=tuple(name for name in ALL_FILTERS if name not in search.filters_off),
        feature_codes=tuple(code for code in sorted(vocabulary.codes) if code not in search.features_off),
        sort_fields=tuple(name for name in SORT_FIELDS if name not in search.sort_fields_off),
        default_limit=search.default_limit,
        max_limit=search.max_limit,
        free_text=search.free_text,
    )


def _hosts(config: Config) -> dict[str, str]:
    """Return the dealer id by host name, in lower case."""
    hosts: dict[str, str] = {}
    for number, dealer in enumerate(config.all_dealers):
        for host in dealer.hosts:
            if host.lower() in hosts:
                raise ConfigError(f"{host} is named twice", *_dealer_key(config, number), "hosts")
            hosts[host.lower()] = dealer.id
    return hosts


def _name(sellers: Collection[Seller]) -> str:
    names = [str(seller.profile["name"]) for seller in sellers]
    return names[0] if len(names) == 1 else "Dealer network"


def _sellers(config: Config) -> Iterable[Seller]:
    if config.dealer is not None and config.dealers:
        raise ConfigError("use [dealer] for one seller or [[dealers]] for several, not both", "dealer")
    ids: set[str] = set()
    wrong: list[ConfigProblem] = []
    chosen: list[tuple[str, dict[str, Any]]] = []
    for number, dealer in enumerate(config.all_dealers):
        key = _dealer_key(config, number)
        if not _DEALER_ID.fullmatch(dealer.id):
            text = "use letters, digits, '-', '_' and '.', since it is part of addresses"
            wrong.append(ConfigProblem((*key, "id"), text))
        elif dealer.id in ids:
            wrong.append(ConfigProblem((*key, "id"), f"{dealer.id} is used twice"))
        ids.add(dealer.id)
        try:
            chosen.append((dealer.id, _profile(dealer.profile, *key, "profile")))
        except ConfigError as error:
            wrong += error.problems
    if wrong:
        raise ConfigError(wrong)
    if not config.all_dealers:
        from forecourt.demo import DEALER_ID, profile

        chosen.append((DEALER_ID, profile()))
    rules, holidays = _rules(config.appointments), _holidays(config.appointments)
    strict = config.appointments.when_unavailable == "reject"
    for number, (dealer_id, read) in enumerate(chosen):
        try:
            yield Seller.from_profile(dealer_id, read, rules, strict_times=strict, holidays=holidays)
        except ValueError as error:
            raise ConfigError(str(error), *_dealer_key(config, number), "profile") from error


def _dealer_key(config: Config, number: int) -> tuple[str | int, ...]:
    """Return the way to a seller's table, by its number among all."""
    return ("dealer",) if config.dealer is not None else ("dealers", number)


def _profile(path: str, *key: str | int) -> dict[str, Any]:
    try:
        profile = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror})", *key) from error
    except ValueError as error:
        raise ConfigError(f"{path} is not JSON", *key) from error
    schemas = SchemaSet.load(versions()[-1])
    problems = schemas.problems("dealer-information.schema.json", profile)
    if problems:
        raise ConfigError(
            [ConfigProblem(key, f"{path}: {problem.sentence}") for problem in problems[:_PROFILE_PROBLEMS]]
        )
    return dict(profile)


def _rules(chosen: Appointments) -> AppointmentRules:
    try:
        return AppointmentRules(
            minutes=chosen.minutes,
            capacity=chosen.capacity,
            step_minutes=chosen.step_minutes,
            notice=timedelta(minutes=chosen.notice_minutes),
            horizon=timedelta(days=chosen.horizon_days),
            confirm_automatically=chosen.confirm,
        )
    except ValueError as error:
        raise ConfigError(str(error), "appointments") from error


def _holidays(chosen: Appointments) -> dict[str, dict[str, str] | None]:
    for day, hours in chosen.holidays.items():
        try:
            date.fromisoformat(day)
        except ValueError:
            raise ConfigError("the keys are dates like 2026-12-25", "appointments", "holidays", day) from None
        if hours is True:
            raise ConfigError("a day is false (closed) or {open, close}", "appointments", "holidays", day)
        if isinstance(hours, dict):
            try:
                OpeningHours.from_profile({}, {day: hours})
            except KeyError as error:
                raise ConfigError("needs both open and close", "appointments", "holidays", day) from error
            except ValueError as error:
                raise ConfigError(str(error), "appointments", "holidays", day) from error
    return {day: hours if isinstance(hours, dict) else None for day, hours in chosen.holidays.items()}


def _store(config: Config) -> Any:
    try:
        return open_store(config.store_address)
    except ValueError as error:
        raise ConfigError(str(error), "store") from error
