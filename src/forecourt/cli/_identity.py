"""Who a personal agent is, from a file: what the buyer's commands need for PAP."""

import json
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import click

__all__ = ["identified"]

_MAX_BYTES: Final = 64 * 1024
_WHAT: Final = (
    'a JSON object with "client_id", "private_key" (a PEM file, beside this one) and, where the published keys have '
    'ids, "key_id"'
)


def identified(path: str, url: str) -> tuple[str, dict[str, Any]]:
    """Return the dealer's address and the options of `connect` for the identity in a file.

    For the agent of `forecourt serve --pap-dev` the address is the demonstration's domain, at the port of `url`.
    """
    try:
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
    except ModuleNotFoundError:
        raise click.ClickException("PAP needs more packages: install forecourt[pap]") from None
    from forecourt.client.carrier.pap import PersonalAgent

    place = Path(path)
    try:
        described = json.loads(_read(place))
        client_id, key_file, key_id = (described.get(name) for name in ("client_id", "private_key", "key_id"))
    except (ValueError, AttributeError, RecursionError):
        raise click.UsageError(f"--identity: {path} is not {_WHAT}") from None
    if not isinstance(client_id, str) or not isinstance(key_file, str) or not isinstance(key_id, str | None):
        raise click.UsageError(f"--identity: {path} is not {_WHAT}")
    try:
        key = load_pem_private_key(_read(place.parent / key_file), None)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise click.UsageError(f"--identity: {key_file} holds no private key EC P-256 in PEM, without a password")
    if described.get("demonstration") is True:
        return _demonstrated(place.parent, url, PersonalAgent, client_id=client_id, private_key=key, key_id=key_id)
    return url, {"binding": "pap", "pap": PersonalAgent(client_id, key, key_id)}


def _demonstrated(folder: Path, url: str, agent: Any, **identity: Any) -> tuple[str, dict[str, Any]]:
    try:
        from forecourt.server.pap.demonstration import DOMAIN, Demonstration
        from forecourt.server.pap.shopper import this_machine, transport_to
    except ModuleNotFoundError:
        raise click.ClickException("PAP needs more packages: install forecourt[pap]") from None
    parts = urlsplit(url)
    if parts.hostname not in ("127.0.0.1", "localhost", DOMAIN):
        raise click.UsageError(
            "--identity: the demonstration's agent shops on this machine alone: https://127.0.0.1:8000"
        )
    pap = agent(resolver=this_machine, allow_private_networks=True, **identity)
    transport = transport_to(Demonstration(folder), parts.port or 443)
    return f"https://{DOMAIN}", {"binding": "pap", "pap": pap, "transport": transport}


def _read(place: Path) -> bytes:
    try:
        with place.open("rb") as file:
            return file.read(_MAX_BYTES)
    except OSError as error:
        raise click.UsageError(f"--identity: {place} cannot be read: {error.strerror}") from None
