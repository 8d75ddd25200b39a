"""The configuration of a deployment: what `forecourt.toml` may say, checked as a whole before anything starts."""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from forecourt.contract import SKILLS
from forecourt.server.config_environment import apply_environment
from forecourt.server.config_problem import ConfigError, mistakes

__all__ = [
    "PAP",
    "Access",
    "Appointments",
    "Config",
    "ConfigError",
    "Dealer",
    "Feed",
    "Leads",
    "Limits",
    "Log",
    "Metrics",
    "OAuth",
    "Rate",
    "Search",
    "Server",
    "load",
]

SKILL_IDS: Final = tuple(SKILLS)

_REDIS: Final = "an address like redis://host:6379/0"
_SCOPE: Final = r"^[!#-\[\]-~]+$"
_ADDRESS: Final = "an http or https address without a slash at its end"

Count = Annotated[int, Meta(ge=1)]


class _Section(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A table of the file: keys that it does not know are mistakes."""


class Server(_Section, frozen=True):
    """Where the agent listens and what it takes."""

    name: str | None = None
    """What a network of sellers is called on its card; None is the seller's name, or "Dealer network" for several."""
    host: Annotated[str, Meta(min_length=1)] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535)] = 8000
    public_url: Annotated[str, Meta(pattern=r"^https?://[^\s?#]*[^\s?#/]$", description=_ADDRESS)] | None = None
    """The address that cards name, without a trailing slash; None takes it from each request."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses or networks of proxies in front, whose X-Forwarded-For and -Proto are believed."""
    max_body_bytes: Annotated[int, Meta(ge=1024, le=64 * 1024 * 1024)] = 1024 * 1024
    body_seconds: Annotated[float, Meta(gt=0, le=300)] = 20.0
    """How long a request's body may take to arrive."""
    max_connections: Annotated[int, Meta(ge=16, le=100_000)] = 2048
    """How many connections one process has; beyond that idle ones are closed, and where none is, new ones refused."""
    max_connections_per_client: Annotated[int, Meta(ge=1, le=100_000)] = 256
    """How many of them from one address; `trusted_proxies` may have all."""
    max_running: Annotated[int, Meta(ge=1, le=10_000)] = 256
    """How many requests one process works on at a time; as many again wait for a moment, further ones are refused."""
    workers: Annotated[int, Meta(ge=1, le=64)] = 1
    """How many processes answer requests, each with the whole catalog in memory; `serve` alone reads it."""
    drain_seconds: Annotated[float, Meta(ge=0, le=300)] = 0.0
    """How long connections are still taken after a signal to stop, while `/readyz` says that the server stops."""


class Dealer(_Section, frozen=True):
    """One seller. `profile` is a JSON file in the shape of `dealer.information`'s data."""

    id: Annotated[str, Meta(min_length=1, max_length=128)]
    profile: str
    hosts: tuple[Annotated[str, Meta(pattern=r"^[A-Za-z0-9.-]+$", description="a host name")], ...] = ()
    """Host names at which this seller alone answers, at the paths that the whole deployment has elsewhere."""
    deliveries: tuple[dict[str, Any], ...] | None = None
    """Where its leads go, see `forecourt.server.destinations`; None is files in `data`, an empty list nowhere."""


class Feed(_Section, frozen=True):
    """A source of inventory that the server fetches itself, see `forecourt.feed.FeedOptions` for what is not here."""

    source: Annotated[str, Meta(min_length=1)]
    """A file, or an http or https address."""
    dealer: str | None = None
    """Whose stock it is; may be left out where there is one seller."""
    every: Annotated[int, Meta(ge=10, le=7 * 86_400)] = 3600
    """Seconds from the end of one fetch to the next."""
    rooftop: str | dict[str, str] | None = None
    """The rooftop that the whole feed is of, or names by the feed's own store codes."""
    columns: dict[str, str] = {}
    """{field: column} beside the packaged table of aliases, and winning over it."""
    keep_unmapped: bool = False
    currency: str = "USD"
    odometer_unit: Annotated[str, Meta(pattern="^(mi|km)$", description='"mi" or "km"')] = "mi"
    default_condition: Annotated[str, Meta(pattern="^(new|used)$", description='"new" or "used"')] = "used"
    timezone: str = "UTC"
    most_removed: Annotated[float, Meta(ge=0, le=1)] = 0.5
    """The share of the stock that may vanish at once; a feed that drops more is refused as a whole."""


class Mcp(_Section, frozen=True):
    """Who may call the MCP endpoints from a browser, and by which names they are reached."""

    allowed_origins: tuple[Annotated[str, Meta(pattern=r"^https?://[^\s/?#]+$")], ...] = ()
    """Web origins beside the server's own whose pages may call, for example "https://assistant.example.com"."""
    allowed_hosts: tuple[Annotated[str, Meta(pattern=r"^[A-Za-z0-9.-]+$")], ...] = ()
    """Host names beside those of `public_url` and the sellers that requests may be addressed to."""


class Search(_Section, frozen=True):
    """What the search offers; everything that is not switched off."""

    filters_off: tuple[str, ...] = ()
    features_off: tuple[str, ...] = ()
    sort_fields_off: tuple[str, ...] = ()
    free_text: bool = True
    default_limit: Annotated[int, Meta(ge=1, le=100)] = 20
    max_limit: Annotated[int, Meta(ge=1, le=100)] = 100
    vocabulary: tuple[str, ...] = ()
    """Files that add feature codes or texts to the packaged vocabulary."""


class Rate(_Section, frozen=True):
    """How often: `requests` in any `seconds` in a row."""

    requests: Count
    seconds: Count = 60


class Limits(_Section, frozen=True):
    """How often one client may call: `requests` in `seconds`; None is as often as it likes."""

    requests: Count | None = None
    seconds: Count = 60
    skills: dict[str, Rate] = {}
    """Limits of single skills beside the general one, by skill id."""
    concurrent: Annotated[int, Meta(ge=1, le=10_000)] = 64
    """How many requests of one client may be under way at a time, in one process."""
    store: Annotated[str, Meta(pattern=r"^(rediss?|valkeys?)://", description=_REDIS)] | None = None
    """Where processes count together; None counts in each process's memory."""


class OAuth(_Section, frozen=True):
    """Bearer tokens (JWT, RFC 9068) of an authorization server."""

    issuer: Annotated[str, Meta(pattern=r"^https?://[^\s?#]+$", description="an http or https address")]
    """The server, exactly as its tokens name it in `iss`."""
    audience: Annotated[str, Meta(min_length=1)]
    """What tokens for this deployment name in `aud`."""
    jwks_url: Annotated[str, Meta(pattern=r"^https?://[^\s#]+$", description="an http or https address")] | None = None
    """Where its keys are; None finds them by the issuer's metadata (RFC 8414)."""
    scopes: dict[str, Annotated[str, Meta(pattern=_SCOPE, description="a scope of RFC 6749")]] = {}
    """The scope that a skill needs, by skill id; one that is not named needs only a token."""
    sellers_claim: str | None = None
    """The claim that lists the dealer ids which a token reaches; None reaches all."""


class Access(_Section, frozen=True):
    """Who may call what. By default anybody may call everything."""

    public: tuple[str, ...] = SKILL_IDS
    """The skills that need no credential."""
    keys: bool = False
    """Whether keys of `forecourt keys` are accepted."""
    oauth: OAuth | None = None


class Log(_Section, frozen=True):
    """What is written to standard error. Never a shopper's data, a credential or an address of a client."""

    format: Annotated[str, Meta(pattern="^(text|json)$", description='"text" or "json"')] = "text"
    level: Annotated[
        str, Meta(pattern="^(debug|info|warning|error)$", description='"debug", "info", "warning" or "error"')
    ] = "warning"
    requests: bool = False
    """Whether each request is a line, at the level info."""


class Metrics(_Section, frozen=True):
    """Who may read `/metrics`."""

    networks: tuple[str, ...] = (
        "127.0.0.0/8",
        "::1/128",
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "fc00::/7",
    )
    """Addresses or networks that are shown the numbers; all others find nothing there."""


class Appointments(_Section, frozen=True):
    """How appointments are given; what is not said keeps the defaults of `AppointmentRules`."""

    confirm: bool = True
    notice_minutes: Annotated[int, Meta(ge=0, le=100_000)] = 120
    horizon_days: Annotated[int, Meta(ge=1, le=366)] = 60
    step_minutes: Annotated[int, Meta(ge=5, le=1440)] = 30
    minutes: dict[str, Count] = {}
    capacity: dict[str, Count] = {}
    when_unavailable: Annotated[str, Meta(pattern="^(propose|reject)$", description='"propose" or "reject"')] = (
        "propose"
    )
    """Whether a time that cannot be had is answered with others, or the whole submission refused."""
    holidays: dict[str, dict[str, str] | bool] = {}
    """Dates with hours of their own, as {open, close}, or false for closed."""


class Leads(_Section, frozen=True):
    """How leads are kept and sent."""

    keep_proof_days: Annotated[int, Meta(ge=31, le=36_500)] = 1825
    """How long the proof of consent stays after a lead's personal data was purged, counted from the lead's arrival."""
    encryption_key_env: Annotated[str, Meta(min_length=1)] | None = None
    """The environment variable with the key under which personal data is kept; None keeps it readable."""
    first_retry_seconds: Annotated[float, Meta(gt=0, le=3600)] = 10.0
    """After what time a delivery that failed is tried again; each further wait is twice as long."""
    give_up_hours: Annotated[float, Meta(gt=0, le=720)] = 24.0
    most_attempts: Annotated[int, Meta(ge=1, le=100)] = 30
    parallel: Annotated[int, Meta(ge=1, le=64)] = 8
    """How many deliveries one process makes at a time."""
    lease_seconds: Annotated[float, Meta(ge=1, le=3600)] = 45.0
    """After what time a delivery whose process died is taken over; a living process renews it meanwhile."""


class PAP(_Section, frozen=True):
    """The Personal Agent Protocol, which needs a domain of one's own and HTTPS."""

    enabled: bool = False
    domain: Annotated[str, Meta(pattern=r"^([A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?\.)+[A-Za-z0-9-]+$")] | None = None
    """The domain at which agents look for `/.well-known/poppy.json`."""
    allow_agents: tuple[str, ...] = ()
    """The only agents that are let in, by `client_id`; empty lets everyone in."""
    deny_agents: tuple[str, ...] = ()
    """Agents that are not let in, by `client_id`, whatever `allow_agents` says."""
    demonstration: bool = False
    """What `forecourt serve --pap-dev` sets: an agent of the demonstration's own is known beforehand."""
    private_networks: bool = False
    """Whether agents' metadata may be fetched from loopback and private addresses: for tests alone."""


class Config(_Section, frozen=True):
    """A whole configuration. With neither `dealer` nor `dealers` the packaged demo dealer is served."""

    server: Server = Server()
    dealer: Dealer | None = None
    """The one seller of a deployment that has one."""
    dealers: tuple[Dealer, ...] = ()
    """The sellers of a network."""
    feeds: tuple[Feed, ...] = ()
    search: Search = Search()
    mcp: Mcp = Mcp()
    limits: Limits = Limits()
    access: Access = Access()
    log: Log = Log()
    metrics: Metrics = Metrics()
    appointments: Appointments = Appointments()
    leads: Leads = Leads()
    pap: PAP = PAP()
    data: str = "forecourt-data"
    """The folder of the embedded database."""
    store: str | None = None
    """The database's address; None is SQLite in `data`."""

    @property
    def all_dealers(self) -> tuple[Dealer, ...]:
        """The configured sellers, however many; none for the demo."""
        return (self.dealer, *self.dealers) if self.dealer is not None else self.dealers

    @property
    def store_address(self) -> str:
        """The address of the database."""
        return self.store or f"sqlite:{Path(self.data) / 'forecourt.db'}"


def load(path: str | Path | None, *, environment: Mapping[str, str] | None = None, **overrides: Any) -> Config:
    """Read a TOML file (None: the defaults), with `overrides` by section: `load(path, server={"port": 9000})`.

    Paths in the file are relative to it. The environment (None: the process's) wins over the file and the overrides
    over both. Raises ConfigError, which holds everything that is wrong.
    """
    table: dict[str, Any] = {}
    text = ""
    if path is not None:
        try:
            text = Path(path).read_text(encoding="utf-8")
            table = tomllib.loads(text)
        except OSError as error:
            raise ConfigError(f"cannot be read ({error.strerror})", file=str(path)) from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"is not TOML: {error}", file=str(path)) from error
        _anchor(table, Path(path).parent)
    variables = apply_environment(table, Config, os.environ if environment is None else environment)
    for section, values in overrides.items():
        said = table.get(section, {})
        if isinstance(values, dict) and isinstance(said, dict):
            table[section] = {**said, **values}
        elif values is not None and not isinstance(values, dict):
            table[section] = values
    try:
        return msgspec.convert(table, Config)
    except msgspec.ValidationError as error:
        found = [replace(each, variable=variables.get(each.key)) for each in mistakes(table, Config)]
        raise ConfigError(found or str(error)).located(str(path) if path else "configuration", text) from error


def _anchor(table: dict[str, Any], folder: Path) -> None:
    """Make the paths of a configuration file relative to the file, wherever the command was called."""
    for dealer in [*_tables(table, "dealers"), *_tables(table, "dealer")]:
        if isinstance(dealer.get("profile"), str):
            dealer["profile"] = str(folder / dealer["profile"])
        for delivery in _tables(dealer, "deliveries"):
            for key in ("path", "ca_file", "password_file", "secret_file"):
                if isinstance(delivery.get(key), str):
                    delivery[key] = str(folder / delivery[key])
    for feed in _tables(table, "feeds"):
        if isinstance(feed.get("source"), str) and feed["source"] and "://" not in feed["source"]:
            feed["source"] = str(folder / feed["source"])
    if isinstance(table.get("data"), str):
        table["data"] = str(folder / table["data"])
    search = table.get("search")
    if isinstance(search, dict) and isinstance(search.get("vocabulary"), list):
        search["vocabulary"] = [str(folder / file) if isinstance(file, str) else file for file in search["vocabulary"]]


def _tables(table: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the table or tables under a name, of whatever was written there."""
    found = table.get(name)
    if isinstance(found, dict):
        return [found]
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []
