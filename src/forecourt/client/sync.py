"""The client for programs without an event loop: the same methods, each waiting for its answer.

A loop of its own runs the async client in a thread, so that it works inside notebooks and servers too.
"""

import asyncio
import os
import threading
from collections.abc import Coroutine, Iterator, Mapping
from typing import Any, TypeVar

from forecourt.client.card import DealerCard
from forecourt.client.client import Client
from forecourt.client.connection import connect
from forecourt.client.consent import ConsentGrant
from forecourt.client.pending import Submission
from forecourt.client.results import DealerInformation, Facets, Receipt, SearchPage, Vehicle

__all__ = ["SyncClient", "connect_sync"]

T = TypeVar("T")


class _Loop:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="forecourt-client", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` in the loop and return what it returns; an interrupt here ends it there."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        """End the loop and its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class SyncClient:
    """`Client` without `await`. Its methods, their arguments and what they raise are those of `Client`.

    Close it when done; `with` does. One call at a time from one thread; several threads may call.
    """

    def __init__(self, client: Client, loop: _Loop) -> None:
        self._client = client
        self._loop = loop

    @property
    def contract(self) -> str:
        """The AAP version that is spoken."""
        return self._client.contract

    @property
    def binding(self) -> str:
        """How requests travel."""
        return self._client.binding

    @property
    def endpoint(self) -> str:
        """Where requests go."""
        return self._client.endpoint

    @property
    def name(self) -> str:
        """What the dealer's card calls it."""
        return self._client.name

    @property
    def card(self) -> DealerCard | None:
        """The dealer's card."""
        return self._client.card

    def __enter__(self) -> "SyncClient":
        """Return the client."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the client."""
        self.close()

    def close(self) -> None:
        """Close every connection and end the loop; a second time does nothing."""
        loop, self._loop = self._loop, _CLOSED
        if loop is not _CLOSED:
            try:
                loop.run(self._client.close())
            finally:
                loop.stop()

    def information(self, *, dealer_id: str | None = None) -> DealerInformation:
        """`dealer.information`."""
        return self._loop.run(self._client.information(dealer_id=dealer_id))

    def facets(self, filters: Mapping[str, Any] | None = None, *, dealer_id: str | None = None, **more: Any) -> Facets:
        """`inventory.facets`."""
        return self._loop.run(self._client.facets(filters, dealer_id=dealer_id, **more))

    def search(
        self,
        filters: Mapping[str, Any] | None = None,
        *,
        sort: str | Mapping[str, Any] | None = None,
        limit: int | None = None,
        skip: int | None = None,
        cursor: str | None = None,
        dealer_id: str | None = None,
        **more: Any,
    ) -> SearchPage:
        """`inventory.search`, one page."""
        found = self._client.search(
            filters, sort=sort, limit=limit, skip=skip, cursor=cursor, dealer_id=dealer_id, **more
        )
        return self._loop.run(found)

    def refresh(self, page: SearchPage) -> SearchPage:
        """Ask the search of a page anew."""
        return self._loop.run(self._client.refresh(page))

    def search_all(
        self,
        filters: Mapping[str, Any] | None = None,
        *,
        sort: str | Mapping[str, Any] | None = None,
        limit: int | None = None,
        dealer_id: str | None = None,
        max_pages: int = 1000,
        **more: Any,
    ) -> Iterator[Vehicle]:
        """Go through every vehicle that matches."""
        walk = self._client.search_all(
            filters, sort=sort, limit=limit, dealer_id=dealer_id, max_pages=max_pages, **more
        )
        end = object()

        async def step() -> Any:
            return await anext(walk, end)

        while (vehicle := self._loop.run(step())) is not end:
            yield vehicle

    def vehicle(
        self,
        vin: str | None = None,
        *,
        stock: str | None = None,
        vehicle_id: str | None = None,
        dealer_id: str | None = None,
    ) -> Vehicle:
        """`inventory.vehicle`."""
        return self._loop.run(self._client.vehicle(vin, stock=stock, vehicle_id=vehicle_id, dealer_id=dealer_id))

    def submit_lead(
        self,
        customer: Mapping[str, Any],
        consent: ConsentGrant,
        *,
        vehicle_of_interest: Mapping[str, Any] | None = None,
        trade_in: Mapping[str, Any] | None = None,
        appointment: Mapping[str, Any] | None = None,
        message: str | None = None,
        dealer_id: str | None = None,
        key: str | None = None,
        pending: str | os.PathLike[str] | None = None,
    ) -> Receipt:
        """`lead.submit`."""
        work = self._client.submit_lead(
            customer,
            consent,
            vehicle_of_interest=vehicle_of_interest,
            trade_in=trade_in,
            appointment=appointment,
            message=message,
            dealer_id=dealer_id,
            key=key,
            pending=pending,
        )
        return self._loop.run(work)

    def resume_lead(self, path: str | os.PathLike[str]) -> Receipt:
        """Send the lead of a pending file again."""
        return self._loop.run(self._client.resume_lead(path))

    def reconcile(self, submission: Submission) -> Receipt:
        """Send a submission again and learn what became of it."""
        return self._loop.run(self._client.reconcile(submission))

    def call(self, skill_id: str, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Send a payload as it is."""
        return self._loop.run(self._client.call(skill_id, payload))


class _Closed(_Loop):
    """What stands where the loop was."""

    def __init__(self) -> None:
        return

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        work.close()
        raise RuntimeError("this client is closed")


_CLOSED = _Closed()


def connect_sync(url: str, **options: Any) -> SyncClient:
    """Find the dealer agent at `url` and return a client without `await`; the options are those of `connect`."""
    connection = connect(url, **options)
    loop = _Loop()

    async def find() -> Client:
        return await connection

    try:
        return SyncClient(loop.run(find()), loop)
    except BaseException:
        loop.stop()
        raise
