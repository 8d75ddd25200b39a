"""Leads over a network that loses three requests and three answers in ten: each arrives, once.

`FORECOURT_LONG=1` sends ten thousand, which are three thousand otherwise.
The agent is the real one with its real store; the network, the clock and the chance are simulated.
"""

import asyncio
import json
import os
import random
import sqlite3
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import httpx
from tests.client.simulated import CARD_URL, SITE, SimulatedTiming, card

from forecourt.client import Client, ConsentGrant, RetryPolicy, TransportError, connect, submission_of
from forecourt.server import create_app, load

SUBMISSIONS: Final = 10_000 if os.environ.get("FORECOURT_LONG") else 3_000
LOST: Final = 0.3
AT_ONCE: Final = 16


class LossyNetwork(httpx.AsyncBaseTransport):
    """A network to an ASGI application that loses requests before it and answers behind it."""

    def __init__(self, app: httpx.AsyncBaseTransport, chance: random.Random) -> None:
        self._app = app
        self._chance = chance
        self.counts: Counter[str] = Counter()
        self.sent: dict[str, set[bytes]] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Carry a request, or lose it, or lose its answer."""
        if request.method == "GET":
            return httpx.Response(200, json=card()) if str(request.url) == CARD_URL else httpx.Response(404)
        body = await request.aread()
        payload = json.loads(body)["params"]["message"]["parts"][0]["data"]
        self.sent.setdefault(payload["idempotency_key"], set()).add(json.dumps(payload).encode())
        self.counts["requests"] += 1
        if self._chance.random() < LOST:
            self.counts["requests lost"] += 1
            raise self._loss()
        answer = await self._app.handle_async_request(request)
        self.counts["arrived"] += 1
        if self._chance.random() < LOST:
            self.counts["answers lost"] += 1
            raise self._loss()
        return answer

    def _loss(self) -> Exception:
        kinds = (httpx.ReadTimeout, httpx.ReadError, httpx.RemoteProtocolError)
        return self._chance.choice(kinds)("lost")


async def submit_all(network: LossyNetwork) -> list[str]:
    """Submit every lead, each until its outcome is known, and return the ids that the dealer gave."""
    policy = RetryPolicy(tries=4, seconds=3600)
    grant = ConsentGrant("Share my name and email.", ("email",), datetime.now(UTC))
    places = asyncio.Semaphore(AT_ONCE)

    async def one(dealer: Client, number: int) -> str:
        async with places:
            submission = dealer.prepare_lead(
                {"first_name": "Shopper", "last_name": f"No{number}", "email": f"s{number}@example.com"}, grant
            )
            while True:
                try:
                    return (await dealer.reconcile(submission)).lead_id or ""
                except TransportError as error:
                    # The tries are used up and nobody knows: the same submission, never another.
                    if submission_of(error) is not submission or not submission.uncertain:
                        raise

    timing = SimulatedTiming(chance=0.5)
    async with connect(SITE, transport=network, retry=policy, timing=timing, max_connections=AT_ONCE) as dealer:
        ids = await asyncio.gather(*(one(dealer, number) for number in range(SUBMISSIONS)))
    assert timing.waits
    return ids


def test_every_submission_over_a_lossy_network_becomes_one_lead(tmp_path: Path) -> None:
    app = create_app(load(None, data=str(tmp_path)))
    network = LossyNetwork(httpx.ASGITransport(app=app), random.Random(7))

    async def whole() -> list[str]:
        await app.deployment.open()
        try:
            return await submit_all(network)
        finally:
            await app.deployment.close()

    ids = asyncio.run(whole())
    assert len(ids) == len(set(ids)) == SUBMISSIONS
    # Every key was sent with one payload, however often it went out.
    assert len(network.sent) == SUBMISSIONS
    assert all(len(payloads) == 1 for payloads in network.sent.values())
    database = sqlite3.connect(tmp_path / "forecourt.db")
    try:
        stored = database.execute("SELECT count(*) FROM lead").fetchone()[0]
    finally:
        database.close()
    assert stored == SUBMISSIONS
    # The network was as bad as it was meant to be.
    assert network.counts["arrived"] > SUBMISSIONS
    for lost, of in (("requests lost", "requests"), ("answers lost", "arrived")):
        assert 0.25 < network.counts[lost] / network.counts[of] < 0.35
