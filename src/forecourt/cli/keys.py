"""`forecourt keys`: the keys that callers prove themselves with."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import click

from forecourt.cli._store import in_store

if TYPE_CHECKING:
    from forecourt.store import APIKey

__all__ = ["command"]

_FAILURE: Final = "the keys cannot be reached"
_CONFIG: Final = click.option(
    "--config", type=click.Path(dir_okay=False), envvar="FORECOURT_CONFIG", help="Configuration file."
)
_DATA: Final = click.option(
    "--data", type=click.Path(file_okay=False), help="Folder of the database (default ./forecourt-data)."
)
_JSON: Final = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


@click.group("keys")
def command() -> None:
    """Make, list and revoke callers' keys.

    They count where the configuration has `[access] keys = true`.

    \b
    Example:
      forecourt keys create "Example shopping agent" --config forecourt.toml
    """


@command.command("create")
@click.argument("name")
@click.option("--seller", "sellers", multiple=True, metavar="ID", help="Reach only this seller; may be repeated.")
@click.option("--requests", type=click.IntRange(1), help="A limit of its own: this many requests in --seconds.")
@click.option("--seconds", type=click.IntRange(1), default=60, show_default=True, help="The window of --requests.")
@_CONFIG
@_DATA
@_JSON
def create(
    name: str,
    sellers: tuple[str, ...],
    requests: int | None,
    seconds: int,
    config: str | None,
    data: str | None,
    as_json: bool,
) -> None:
    """Make a key called NAME and print it, this once: only its digest is kept.

    \b
    Example:
      forecourt keys create "Example shopping agent" --seller example-motors --requests 120
    """
    from forecourt.server.api_keys import new_key

    text, key = new_key(name, datetime.now(UTC), sellers or None, requests, seconds if requests is not None else None)
    in_store(config, data, _FAILURE, lambda store: store.add_api_key(key), ("--seller", sellers))
    if as_json:
        click.echo(json.dumps({"key": text, **_shown(key)}, ensure_ascii=False))
    else:
        click.echo(text)
        click.echo(f"Keep it now: it is not shown again. Revoke it with: forecourt keys revoke {key.key_id}", err=True)


@command.command("list")
@_CONFIG
@_DATA
@_JSON
def list_(config: str | None, data: str | None, as_json: bool) -> None:
    """List the keys, in the order in which they were made, without what they are.

    \b
    Example:
      forecourt keys list --config forecourt.toml
    """
    keys: Sequence[APIKey] = in_store(config, data, _FAILURE, lambda store: store.api_keys())
    if as_json:
        click.echo(json.dumps([_shown(key) for key in keys], ensure_ascii=False))
    elif not keys:
        click.echo("there are no keys")
    else:
        lines = [("id", "name", "sellers", "limit", "made", "revoked"), *map(_line, keys)]
        click.echo("\n".join("\t".join(line) for line in lines))


@command.command("revoke")
@click.argument("key_id", metavar="ID")
@_CONFIG
@_DATA
def revoke(key_id: str, config: str | None, data: str | None) -> None:
    """Let a key open nothing any more. Running servers know within two seconds.

    \b
    Example:
      forecourt keys revoke fck_0000000000000000000000
    """
    done = in_store(
        config, data, _FAILURE, lambda store: store.revoke_api_key(key_id.partition(".")[0], datetime.now(UTC))
    )
    if not done:
        raise click.ClickException("there is no such key that still opens anything")
    click.echo("revoked")


def _shown(key: "APIKey") -> dict[str, Any]:
    return {
        "id": key.key_id,
        "name": key.name,
        "sellers": None if key.sellers is None else list(key.sellers),
        "requests": key.requests,
        "seconds": key.seconds,
        "made_at": _time(key.made_at),
        "revoked_at": _time(key.revoked_at) or None,
    }


def _line(key: "APIKey") -> tuple[str, ...]:
    limit = f"{key.requests} in {key.seconds} s" if key.requests else ""
    name = "".join(sign if sign.isprintable() else "\ufffd" for sign in key.name)
    sellers = "all" if key.sellers is None else ", ".join(key.sellers)
    return (key.key_id, name, sellers, limit, _time(key.made_at), _time(key.revoked_at))


def _time(moment: datetime | None) -> str:
    return "" if moment is None else moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
