"""What `backup` and `restore` share: the store, not opened, and one place where failures are told."""

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from forecourt.store import Backup, Store

__all__ = ["copying", "told"]


def copying(
    config: str | None, data: str | None, work: "Callable[[Store, Path], Awaitable[Backup]]", file: str
) -> "Backup":
    """Return what `work` gives with the store of a configuration. Raises click.ClickException."""
    import asyncio

    from forecourt.cli._mistake import wrong_usage
    from forecourt.server import ConfigError, load
    from forecourt.store import BackupError, NoDatabaseError, StoreError, open_store

    async def run() -> "Backup":
        return await work(open_store(address), Path(file))

    try:
        address = load(config, data=data).store_address
        return asyncio.run(run())
    except ConfigError as error:
        raise wrong_usage(error, config) from None
    except ValueError as error:
        raise wrong_usage(ConfigError(str(error), "store"), config) from None
    except (BackupError, NoDatabaseError) as error:
        raise click.ClickException(str(error)) from None
    except StoreError as error:
        raise click.ClickException(f"the database does not answer: {error}") from None


def told(made: "Backup") -> dict[str, Any]:
    """Return a backup as a program reads it."""
    return asdict(made)
