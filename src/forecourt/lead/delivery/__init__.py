"""Deliveries: how a parcel reaches a dealer, each way one module here, found by the name that a target gives it.

`open_target({"via": "email", ...})` is `forecourt.lead.delivery.email`. A module that is a way to deliver exports
`SETTINGS`, the struct of what a target of it may say, and `TARGET`, what is made with one. What is to be sent when, and
how often it is tried, is decided elsewhere: a target tries once and says what came of it.
"""

import importlib
import pkgutil
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, Literal, Protocol

import msgspec

__all__ = [
    "DeliveryError",
    "Kind",
    "Parcel",
    "Target",
    "TargetError",
    "open_target",
    "settings_of",
    "ways",
]

Kind = Literal["adf", "notice", "event"]

_PLACE: Final = re.compile(r"^(?P<problem>.*) - at `\$\.?(?P<key>.*)`$")


@dataclass(frozen=True, slots=True)
class Parcel:
    """One thing for one target. Personal: the repr shows nothing of the content.

    `delivery_id` stays the same over every retry, so that whoever gets it twice can tell. `kind` says what `content`
    is: "adf" an ADF document in ASCII, "event" an `aap.event` as compact JSON, "notice" plain text in UTF-8 for
    people, which alone may come with a `calendar` (iCalendar). `vendor` is the rooftop's name, for a subject.
    """

    delivery_id: str
    lead_id: str
    kind: Kind
    vendor: str
    content: bytes = field(repr=False)
    calendar: bytes | None = field(default=None, repr=False)


class DeliveryError(Exception):
    """A parcel did not arrive, as far as is known.

    `reason` is in our own words and holds neither what the other side said nor anything personal: it may be shown
    and logged. `permanent` tells that trying the same again is of no use; otherwise it may be tried again, not
    before `retry_after` seconds if the other side asked for that.
    """

    def __init__(self, reason: str, *, permanent: bool = False, retry_after: float | None = None) -> None:
        """Keep what came of it."""
        super().__init__(reason)
        self.reason = reason
        self.permanent = permanent
        self.retry_after = retry_after


class TargetError(ValueError):
    """A target cannot be used as it is set up: one line that names the key and the problem, and no secret."""


class Target(Protocol):
    """One place that parcels are sent to. May be used by many tasks at once, of one event loop."""

    kind: str
    """The way, as its module is called."""

    async def send(self, parcel: Parcel) -> None:
        """Deliver the parcel: when this returns, the other side has it for good. Raises DeliveryError.

        Bounded in time. Sending the same parcel again is allowed and, where the way can tell, harmless.
        """
        ...

    async def close(self) -> None:
        """Give up what is held open."""
        ...


def ways() -> tuple[str, ...]:
    """Return what `via` may say, in order."""
    return tuple(name for name in _modules() if _way(name) is not None)


def settings_of(via: str) -> type[msgspec.Struct]:
    """Return the struct of what a target of this way may say, `via` left out. Raises TargetError for no way."""
    module = _way(via) if via in _modules() else None
    if module is None:
        raise TargetError(f"via: must be one of {', '.join(ways())}")
    struct: type[msgspec.Struct] = module.SETTINGS
    return struct


def open_target(settings: Mapping[str, Any]) -> Target:
    """Return the target that `settings` describe; `settings["via"]` is its way. Connects to nothing yet.

    Raises TargetError.
    """
    via = settings.get("via")
    if not isinstance(via, str):
        raise TargetError(f"via: must be one of {', '.join(ways())}")
    struct = settings_of(via)
    try:
        read = msgspec.convert({key: value for key, value in settings.items() if key != "via"}, struct)
    except msgspec.ValidationError as error:
        raise TargetError(_told(str(error))) from None
    target: Target = _way(via).TARGET(read)
    return target


@cache
def _modules() -> tuple[str, ...]:
    # Looked for once: a network opens thousands of targets.
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


def _way(name: str) -> Any:
    """Return the module of this name if it is a way to deliver."""
    module = importlib.import_module(f"{__name__}.{name}")
    return module if hasattr(module, "TARGET") else None


def _told(message: str) -> str:
    """Return what msgspec found with its key first. It repeats names of keys and kinds of values, no values."""
    found = _PLACE.match(message)
    return message if found is None else f"{found['key']}: {found['problem']}"
