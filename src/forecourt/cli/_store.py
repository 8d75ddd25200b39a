"""How commands work in the store of a configuration, and tell in one line what goes wrong."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from forecourt.store import Store

__all__ = ["in_store"]

Result = TypeVar("Result")


def in_store(
    config: str | None,
    data: str | None,
    failure: str,
    work: "Callable[[Store], Awaitable[Result]]",
    sellers: tuple[str, Sequence[str]] = ("", ()),
) -> Result:
    """Return what `work` gives in the open store; `failure` is what is said when the database fails.

    `sellers` is an option and the dealer ids that it named: those that the configuration does not have are wrong usage,
    as is a configuration that cannot be used. Raises click.ClickException.
    """
    import asyncio

    from forecourt.cli._mistake import wrong_usage
    from forecourt.server import ConfigError, load
    from forecourt.store import StoreError, open_store

    async def run(address: str) -> Result:
        try:
            store = open_store(address)
        except ValueError as error:
            raise ConfigError(str(error), "store") from error
        await store.open()
        try:
            return await work(store)
        finally:
            await store.close()

    try:
        settings = load(config, data=data)
        known = [each.id for each in settings.all_dealers]
        option, named = sellers
        for seller in named:
            if known and seller not in known:
                raise ConfigError(f"{option}: there is no seller {seller!r}")
        return asyncio.run(run(settings.store_address))
    except ConfigError as error:
        raise wrong_usage(error, config) from None
    except StoreError as error:
        raise click.ClickException(f"{failure}: {error}") from None
