"""The configured deliveries: where each seller's leads go, read from the configuration and opened with its secrets."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from forecourt.lead.adf import ADFOptions
from forecourt.lead.delivery import Target, TargetError, open_target, settings_of
from forecourt.lead.outbox import Destination
from forecourt.lead.sealing import Sealer, SealError
from forecourt.lead.seller import Seller
from forecourt.server.config import Config, ConfigError
from forecourt.server.config_problem import mistakes

__all__ = ["COMMON_KEYS", "PlannedTarget", "make_folders", "open_targets", "plan_targets", "read_sealer"]

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_TOLD: Final = re.compile(r"(?P<name>[a-z_]+): (?P<text>.+)", re.DOTALL)
_DEFAULT: Final = "folder"


class _Own(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """What a table of deliveries says whatever its way is."""

    name: str | None = None
    rooftop: str | None = None
    format: Literal["adf", "notice"] | None = None
    events: bool = False
    condition_element: bool = False
    brand: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    brand_url: Annotated[str, Meta(min_length=1, max_length=2048)] | None = None
    source: str = "Forecourt"


COMMON_KEYS: Final = _Own.__struct_fields__
"""The keys that every table of deliveries has."""


@dataclass(frozen=True, slots=True)
class PlannedTarget:
    """A destination and how its target is opened. `makes` is a folder that is made where it is missing."""

    dealer_id: str
    destination: Destination
    settings: Mapping[str, Any]
    key: tuple[str | int, ...]
    """Where in the configuration it stands."""
    makes: Path | None = None


def plan_targets(config: Config, sellers: Mapping[str, Seller]) -> list[PlannedTarget]:
    """Return the targets of all sellers, without opening any and without asking for secrets. Raises ConfigError.

    A seller that says nothing of deliveries gets files in the folder of the database, unless leads are encrypted
    there: files beside it would not be.
    """
    said: dict[str, tuple[tuple[str | int, ...], Sequence[Mapping[str, Any]] | None]] = {
        dealer.id: (("dealers", number, "deliveries"), dealer.deliveries)
        for number, dealer in enumerate(config.dealers)
    }
    if config.dealer is not None:
        said[config.dealer.id] = (("dealer", "deliveries"), config.dealer.deliveries)
    found: list[PlannedTarget] = []
    for seller in sellers.values():
        key, tables = said.get(seller.dealer_id, ((), None))
        if tables is None:
            if config.leads.encryption_key_env is None:
                found.append(_default(config, seller, alone=len(sellers) == 1))
            continue
        found += _planned(seller, tables, key)
    return found


def open_targets(planned: Iterable[PlannedTarget]) -> dict[str, Target]:
    """Return the targets by the keys of their destinations. Raises ConfigError, which names the table and the key."""
    targets = {}
    for each in planned:
        try:
            targets[each.destination.key] = open_target(each.settings)
        except TargetError as error:
            raise _mistake(str(error), each.key) from error
    return targets


def make_folders(planned: Iterable[PlannedTarget]) -> None:
    """Make the folders that nobody configured. Raises ConfigError."""
    for each in planned:
        if each.makes is not None:
            try:
                # Shoppers' data is for the one who runs the agent.
                each.makes.mkdir(mode=0o700, parents=True, exist_ok=True)
            except OSError as error:
                raise ConfigError(f"the folder for leads cannot be made ({error.strerror})", *each.key) from error


def read_sealer(config: Config) -> Sealer:
    """Return what seals leads, by the key of the environment if the configuration names one. Raises ConfigError."""
    name = config.leads.encryption_key_env
    if name is None:
        return Sealer()
    text = os.environ.get(name, "")
    if not text.strip():
        raise ConfigError(f"the environment has no {name}", "leads", "encryption_key_env")
    try:
        return Sealer.from_text(text)
    except SealError as error:
        raise ConfigError(str(error), "leads", "encryption_key_env") from error


def _default(config: Config, seller: Seller, *, alone: bool) -> PlannedTarget:
    folder = Path(config.data) / "leads"
    if not alone:
        folder /= seller.dealer_id
    destination = Destination(f"{seller.dealer_id}/{_DEFAULT}")
    return PlannedTarget(seller.dealer_id, destination, {"via": "folder", "path": str(folder)}, ("data",), folder)


def _mistake(told: str, key: tuple[str | int, ...]) -> ConfigError:
    """Return a mistake in a table at `key`; what tells of it may begin with the name of a key in the table."""
    found = _TOLD.fullmatch(told)
    return ConfigError(told, *key) if found is None else ConfigError(found["text"], *key, found["name"])


def _planned(
    seller: Seller, tables: Iterable[Mapping[str, Any]], key: tuple[str | int, ...]
) -> Iterable[PlannedTarget]:
    names: set[str] = set()
    for number, table in enumerate(tables):
        place = (*key, number)
        try:
            settings = {name: value for name, value in table.items() if name not in COMMON_KEYS}
            via = settings.pop("via", None)
            if not isinstance(via, str):
                raise ValueError("via: must be the name of a way to deliver")
            common = {name: table[name] for name in COMMON_KEYS if name in table}
            struct = settings_of(via)
            try:
                own = msgspec.convert(common, _Own)
                msgspec.convert(settings, struct)
            except msgspec.ValidationError as error:
                # What is wrong is looked for only where something is: it takes much longer.
                wrong = [*mistakes(common, _Own, place), *mistakes(settings, struct, place)]
                raise (ConfigError(wrong) if wrong else ConfigError(str(error), *place)) from error
            destination = _destination(seller, own, via, names)
        except ConfigError:
            raise
        except ValueError as error:
            raise _mistake(str(error), place) from error
        settings["via"] = via
        yield PlannedTarget(seller.dealer_id, destination, settings, place)


def _destination(seller: Seller, own: _Own, via: str, names: set[str]) -> Destination:
    if own.rooftop is not None and seller.rooftop(own.rooftop) is None:
        raise ValueError("rooftop: the seller has no rooftop of this name")
    if own.events and own.format is not None:
        raise ValueError("format: is of leads, and with events = true none are sent")
    number = 1
    name = own.name or via
    while own.name is None and name in names:
        number += 1
        name = f"{via}-{number}"
    if not _NAME.fullmatch(name):
        raise ValueError("name: use up to 64 letters, digits, '-', '_' and '.'")
    if name in names:
        raise ValueError(f"name: {name} is used twice")
    names.add(name)
    options = ADFOptions(
        condition_element=own.condition_element, brand=own.brand, brand_url=own.brand_url, source=own.source
    )
    form: Literal["adf", "notice", "event"] = "event" if own.events else own.format or "adf"
    return Destination(f"{seller.dealer_id}/{name}", form, own.rooftop, options)
