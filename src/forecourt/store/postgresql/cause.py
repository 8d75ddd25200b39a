"""What is wrong with a database, in our own words: the driver's and the server's name addresses, users and values."""

from collections.abc import Mapping
from typing import Final

import psycopg

__all__ = ["cause"]

_STATES: Final[Mapping[str, str]] = {
    "08": "the connection was lost",
    "25006": "it takes no writes (a standby, or read-only)",
    "28": "it refuses the user or the password",
    "3D000": "there is no such database",
    "3F000": "there is no such schema",
    "40001": "another transaction was in the way",
    "40P01": "another transaction was in the way",
    "42501": "the user may not do this there",
    "42P01": "a table is missing",
    "53100": "its disk is full",
    "53200": "it is out of memory",
    "53300": "it has no connection left",
    "53": "it is short of something",
    "55P03": "a lock was not to be had in time",
    "57014": "it took too long",
    "57P01": "it is shutting down",
    "57P02": "it has crashed",
    "57P03": "it is starting or shutting down",
    "57": "it has ended this",
    "58": "its system or its disk fails",
    "XX": "it has an internal fault",
}
"""By SQLSTATE (PostgreSQL, appendix A), whole or its class."""

_SIGNS: Final[tuple[tuple[str, str], ...]] = (
    ("password authentication failed", "it refuses the user or the password"),
    ("no password supplied", "it asks for a password, and the address has none"),
    ("no pg_hba.conf entry", "it lets nobody in from this machine so (pg_hba.conf)"),
    ('role "', "it refuses the user or the password"),
    ('database "', "there is no such database"),
    ("too many clients", "it has no connection left"),
    ("connection slots", "it has no connection left"),
    ("starting up", "it is starting or shutting down"),
    ("shutting down", "it is starting or shutting down"),
    ("recovery mode", "it is starting or shutting down"),
    ("translate host name", "its host's name leads nowhere"),
    ("not known", "its host's name leads nowhere"),
    ("resolve", "its host's name leads nowhere"),
    ("certificate", "its certificate is not trusted"),
    ("SSL", "TLS cannot be agreed on"),
    ("timeout", "it does not answer in time"),
    ("Connection refused", "nothing answers at its address"),
    ("No such file or directory", "nothing answers at its address"),
    ("closed", "the connection was lost"),
    ("terminat", "the connection was lost"),
    ("lost", "the connection was lost"),
)
"""By what libpq says where there is no SQLSTATE yet; the first that fits."""


def cause(error: psycopg.Error) -> str:
    """Return what is wrong, or the driver's word for the kind of error; nothing of its text."""
    state = error.sqlstate
    if state is not None:
        return _STATES.get(state) or _STATES.get(state[:2]) or f"{type(error).__name__} {state}"
    text = str(error)
    return next((words for sign, words in _SIGNS if sign in text), type(error).__name__)
