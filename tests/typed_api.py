"""The public names as a typed program uses them. Nothing runs this file: mypy checks it, in strict mode."""

from collections.abc import Mapping
from typing import Any, assert_type

import forecourt
from forecourt import AAPError, Config, Problem, a2a, create_app
from forecourt.client import SearchPage, SyncClient
from forecourt.server import Application, ConfigError, load


def errors() -> Mapping[str, Any]:
    """Make an error, raise it, look into it."""
    problem = Problem("/filters/year_min", "type", "must be an integer")
    try:
        raise AAPError("SCHEMA_VALIDATION_FAILED", problems=[problem], hint="Send a number.")
    except AAPError as error:
        assert_type(error.code, str)
        assert_type(error.problems, tuple[Problem, ...])
        assert_type(error.retryable, bool)
        assert_type(error.retry_after_ms, int | None)
        return error.to_payload()


def protocol() -> dict[str, Any]:
    """Make and write an A2A error."""
    error = a2a.A2AError.invalid_params("params must be an object")
    assert_type(error.auth_rejection, a2a.AuthRejection | None)
    return a2a.envelope.error("req-1", error)


def application(path: str) -> Application:
    """Make an ASGI application."""
    config: Config = Config()
    try:
        config = load(path, server={"port": 9000})
    except ConfigError as error:
        assert_type(str(error), str)
    assert_type(config.server.port, int)
    assert_type(create_app(), Application)
    return create_app(config)


async def shopping(url: str) -> int | float | None:
    """Find a dealer and a car."""
    async with forecourt.connect(url, contract="3.1") as dealer:
        page = await dealer.search(make="Honda", limit=1)
        assert_type(page, SearchPage)
        async for car in dealer.search_all(make="Honda"):
            assert_type(car.title, str)
    with forecourt.connect_sync(url) as waiting:
        assert_type(waiting, SyncClient)
        try:
            return waiting.vehicle("1G1FY6SW1NA000493").price
        except forecourt.TransportError as error:
            assert_type(error.status, int | None)
            return None


assert_type(forecourt.__version__, str)
