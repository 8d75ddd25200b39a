"""`Idempotency-Key` on a write: a repeat in the same Session within a day gets the first answer again.

PAP's own aid for retries (guides, "Retries"), in the package's records. It sits in front of AAP's `idempotency_key`,
which goes on deciding across Sessions and bindings: what is not remembered here is decided there.
"""

import hashlib
import json
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

from personal_agent_protocol.company import CompanyStore
from personal_agent_protocol.company.store import IDEMPOTENCY, IdempotencyRecord, IssuedSession

from forecourt.binding import Answer
from forecourt.binding.pap import answer, refuse
from forecourt.server.pap.company import DealerCompany

__all__ = ["RetryKeys"]

_KEPT: Final = timedelta(days=1)
_HELD: Final = timedelta(minutes=1)
"""How long a key is held for a request that is under way: one whose process died lets it go then."""
_TRIES: Final = 8


class RetryKeys:
    """The keys of all Sessions."""

    def __init__(self, company: DealerCompany) -> None:
        self._company = company

    @property
    def _store(self) -> CompanyStore:
        return self._company.store

    async def once(
        self, session: IssuedSession, key: str, digest: str, perform: Callable[[], Awaitable[Answer]]
    ) -> Answer:
        """Perform a request, or give the answer that it had before under this key.

        `digest` tells one request from another. Only a success is remembered; what `perform` raises comes out, and
        the key is free again. Raises StoreError.
        """
        record = hashlib.sha256(json.dumps([session.session_id, key]).encode()).hexdigest()
        earlier = await self._hold(record, digest)
        if earlier is not None:
            return earlier
        try:
            answered = await perform()
        except BaseException:
            await self._store.delete(IDEMPOTENCY, record)
            raise
        if answered.status != 200:
            await self._store.delete(IDEMPOTENCY, record)
            return answered
        kept = IdempotencyRecord(digest, answered.status, answered.body.decode())
        await self._store.put(IDEMPOTENCY, record, kept.to_json(), expires_at=self._company.now() + _KEPT)
        return answered

    async def _hold(self, record: str, digest: str) -> Answer | None:
        held = IdempotencyRecord(digest).to_json()
        for _ in range(_TRIES):
            if await self._store.create(IDEMPOTENCY, record, held, expires_at=self._company.now() + _HELD):
                return None
            found = await self._store.get(IDEMPOTENCY, record)
            if found is None:
                continue
            known = IdempotencyRecord.from_json(found.value)
            if known.digest != digest:
                return refuse(409, "idempotency_key_conflict", "This Idempotency-Key came with another request.")
            if known.status is not None:
                return answer(known.status, str(known.body).encode())
            break
        return refuse(503, "temporarily_unavailable", "The first request is still under way.", retry_after="1")
