"""The client of one dealer: a method a skill, one loop around every call, and leads that retrying cannot double."""

import inspect
import logging
import os
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from forecourt.a2a import A2AError, ErrorCode, FailureKind, envelope
from forecourt.client import pending
from forecourt.client.address import origin, shown
from forecourt.client.card import DealerCard
from forecourt.client.carrier import Carrier
from forecourt.client.consent import ConsentGrant
from forecourt.client.dialect import Dialect, dialect_of_uri
from forecourt.client.failure import Answer, PagingError, TransportError
from forecourt.client.http import Http
from forecourt.client.pending import PendingError, Submission
from forecourt.client.results import DealerInformation, Facets, Receipt, SearchPage, Vehicle
from forecourt.client.retry import RetryPolicy, Timing, Wait, decide
from forecourt.client.trace import Hook, Try, outcome_of
from forecourt.contract import SKILLS
from forecourt.errors import AAPError, timestamp

__all__ = ["Client", "Credentials", "Settings", "submission_of"]

Credentials = Mapping[str, str] | Callable[[str | None], Mapping[str, str] | Awaitable[Mapping[str, str]]]
"""Headers that prove who the caller is, or what makes them: it gets the dealer's challenge, None before the first."""

_log = logging.getLogger("forecourt.client")

_PAGE_CAP: Final = 1000
_RESTARTS: Final = 2

Write = Callable[[Dialect], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Settings:
    """What a client was made with; `connect` explains each."""

    retry: RetryPolicy = field(default_factory=RetryPolicy)
    timeout: float = 30.0
    credentials: Credentials | None = None
    trust: tuple[str, ...] = ()
    agent: str | Mapping[str, Any] = "forecourt"
    hook: Hook | None = None
    hook_sees_bodies: bool = False
    contract_is_pinned: bool = False
    timing: Timing = field(default_factory=Timing)
    on_stale_card: Callable[[], None] | None = None


class Client:
    """A dealer, as `forecourt.connect` found it. Close it when done; `async with` does.

    Every method raises AAPError (the skill failed), A2AError (the protocol did) or TransportError (no readable answer
    came), each with the answer as it came in `raw`. What may pass by itself has been tried again by then, as the
    dealer's `retryable` and the client's `RetryPolicy` allow.
    """

    def __init__(
        self, http: Http, carrier: Carrier, spoken: Dialect, site: str, card: DealerCard | None, settings: Settings
    ) -> None:
        self._http = http
        self._carrier = carrier
        self._dialect = spoken
        self._settings = settings
        self.site = site
        self.card = card

    @property
    def contract(self) -> str:
        """The AAP version that is spoken, for example "3.1"."""
        return self._dialect.version

    @property
    def binding(self) -> str:
        """How requests travel: "a2a", "mcp" or "pap"."""
        return self._carrier.binding

    @property
    def endpoint(self) -> str:
        """Where requests go."""
        return self._carrier.endpoint

    @property
    def name(self) -> str:
        """What the dealer's card calls it, "" without a card."""
        return self.card.name if self.card else ""

    async def __aenter__(self) -> "Client":
        """Return the client."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the client."""
        await self.close()

    async def close(self) -> None:
        """Close every connection."""
        await self._carrier.close()
        await self._http.close()

    # The skills

    async def information(self, *, dealer_id: str | None = None) -> DealerInformation:
        """`dealer.information`: the dealer's profile, its rooftops, and what can be searched by."""
        answer = await self._exchange("dealer.information", lambda d: d.request("dealer.information", {}, dealer_id))
        return DealerInformation(answer["data"])

    async def facets(
        self, filters: Mapping[str, Any] | None = None, *, dealer_id: str | None = None, **more: Any
    ) -> Facets:
        """`inventory.facets`: counts and ranges over what matches the filters (as for `search`)."""
        chosen = {**(filters or {}), **more}
        answer = await self._exchange(
            "inventory.facets",
            lambda d: d.request("inventory.facets", {"filters": d.filters(chosen) or None}, dealer_id),
        )
        return Facets(answer["data"])

    async def search(
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
        """`inventory.search`: one page. Filters are those of the contract, `make="Honda", price_max=30000`; one value
        may stand for a list of one. `sort` is a field, with a minus for descending: "-price".

        Raises ValueError for a way of paging that the contract does not have.
        """
        chosen = {**(filters or {}), **more}
        answer = await self._exchange(
            "inventory.search", lambda d: d.search(chosen, sort, limit, skip, cursor, dealer_id)
        )
        asked = {"filters": chosen, "sort": sort, "limit": limit, "dealer_id": dealer_id}
        return SearchPage(answer["data"], asked, answer.get("message"))

    async def refresh(self, page: SearchPage) -> SearchPage:
        """Ask the search of `page` anew, from its beginning: what to do when one of its vehicles is gone."""
        return await self.search(**page.request)

    async def search_all(
        self,
        filters: Mapping[str, Any] | None = None,
        *,
        sort: str | Mapping[str, Any] | None = None,
        limit: int | None = None,
        dealer_id: str | None = None,
        max_pages: int = _PAGE_CAP,
        **more: Any,
    ) -> AsyncIterator[Vehicle]:
        """Go through every vehicle that matches, each once, page by page as they are needed.

        A cursor that the dealer no longer takes (INVALID_CURSOR) starts the walk again from its beginning, twice at
        most, without what was given out before. Raises PagingError for a cursor that comes back, a page that brings
        nothing new, or more pages than `max_pages`.
        """
        chosen = {**(filters or {}), **more}
        seen: set[str] = set()
        cursors: set[str] = set()
        cursor: str | None = None
        skip = 0
        restarts = 0
        for _ in range(max_pages):
            by_cursor = self._dialect.by_cursor
            try:
                page = await self.search(
                    chosen,
                    sort=sort,
                    limit=limit,
                    dealer_id=dealer_id,
                    cursor=cursor if by_cursor else None,
                    skip=None if by_cursor else skip,
                )
            except AAPError as error:
                if error.code != "INVALID_CURSOR" or cursor is None or restarts == _RESTARTS:
                    raise
                restarts += 1
                cursor, cursors, skip = None, set(), 0
                continue
            vehicles = page.vehicles
            fresh = [vehicle for vehicle in vehicles if _identity(vehicle) not in seen]
            for vehicle in fresh:
                if _identity(vehicle) not in seen:
                    seen.add(_identity(vehicle))
                    yield vehicle
            if by_cursor:
                cursor = page.next_cursor
                if cursor is None:
                    return
                if cursor in cursors:
                    raise PagingError("the dealer gave the same cursor twice; this search has no end")
                cursors.add(cursor)
                continue
            skip += len(vehicles)
            if not vehicles or (page.total is not None and skip >= page.total):
                return
            if not fresh:
                raise PagingError("the dealer gave the same page twice; this search has no end")
        raise PagingError(f"the search has more than {max_pages} pages; narrow it, or raise max_pages")

    async def vehicle(
        self,
        vin: str | None = None,
        *,
        stock: str | None = None,
        vehicle_id: str | None = None,
        dealer_id: str | None = None,
    ) -> Vehicle:
        """`inventory.vehicle`: one listing in full. AAPError VEHICLE_UNAVAILABLE for one that was here and is gone.

        Raises ValueError when nothing is named.
        """
        named = {"vin": vin, "stock": stock, "vehicle_id": vehicle_id}
        if not any(named.values()):
            raise ValueError("name the vehicle by vin, stock or vehicle_id")
        answer = await self._exchange("inventory.vehicle", lambda d: d.request("inventory.vehicle", named, dealer_id))
        return Vehicle(answer["data"])

    async def submit_lead(
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
        """`lead.submit`: hand the shopper's enquiry to the dealer, once, however often it has to be sent.

        The idempotency key is made before the first try (or is yours, `key`). With `pending` the lead is on the disk
        before it goes out: `resume_lead` sends it again after a crash, and the file is removed when the outcome is
        known. `submission_of(error)` gives the submission of a failure, for `reconcile`.

        Raises TypeError for a consent that is no grant, PendingError for a file that holds another lead.
        """
        submission = self.prepare_lead(
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
        return await self.reconcile(submission)

    def prepare_lead(
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
    ) -> Submission:
        """Return the submission that `submit_lead` sends, without sending it."""
        if not isinstance(consent, ConsentGrant):
            raise TypeError("consent is a ConsentGrant: show a Disclosure, and make its grant after the shopper's yes")
        agent = self._settings.agent
        members = {
            "customer": dict(customer),
            "consent": consent.to_payload(),
            "source_agent": {"name": agent} if isinstance(agent, str) else dict(agent),
            "vehicle_of_interest": vehicle_of_interest,
            "trade_in": trade_in,
            "appointment": appointment,
            "message": message,
            "submitted_at": timestamp(self._settings.timing.now()),
        }
        payload = self._dialect.lead(members, key or str(uuid.uuid4()), dealer_id)
        submission = Submission(payload, self._dealer(), self.contract)
        return submission if pending is None else keep_pending(submission, pending)

    async def resume_lead(self, path: str | os.PathLike[str]) -> Receipt:
        """Send the lead of a pending file again, unchanged and under its own key, and return the dealer's answer.

        Raises PendingError for a file of another dealer or contract; OSError when there is none.
        """
        return await self.reconcile(pending.load(path))

    async def reconcile(self, submission: Submission) -> Receipt:
        """Send a submission and learn what became of it: the same payload and key as before, over whatever binding this
        client speaks. A dealer that has it gives its first answer again.

        After a failure, `submission.uncertain` tells whether the dealer may have the lead. Then only this method may
        follow, never a new submission.
        """
        if submission.dealer != self._dealer() or submission.contract != self.contract:
            raise PendingError(
                f"this lead was made for {submission.dealer}, contract {submission.contract}; connect to that"
            )
        try:
            answer = await self._exchange("lead.submit", lambda _: dict(submission.payload), submission)
        except (AAPError, A2AError, TransportError) as error:
            _attach(error, submission)
            if not submission.uncertain and _is_last_word(error):
                pending.erase(submission)
            raise
        submission.uncertain = False
        pending.erase(submission)
        return Receipt(answer["data"], submission.key, answer.get("message"))

    async def call(self, skill_id: str, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request payload as it is and return the response payload; `type` is added where it is missing.

        A `lead.submit` without an idempotency_key gets one before the first try. KeyError for a skill that is none.
        """
        skill = SKILLS[skill_id]
        sent = {"type": skill.request_type, **payload}
        if not skill.writes:
            return await self._exchange(skill_id, lambda _: dict(sent))
        sent.setdefault("idempotency_key", str(uuid.uuid4()))
        submission = Submission(sent, self._dealer(), self.contract)
        try:
            return await self._exchange(skill_id, lambda _: dict(sent), submission)
        except (AAPError, A2AError, TransportError) as error:
            _attach(error, submission)
            raise

    # The one loop

    async def _exchange(self, skill_id: str, write: Write, submission: Submission | None = None) -> dict[str, Any]:
        settings, timing = self._settings, self._settings.timing
        began = timing.monotonic()
        attempt, challenge = 0, None
        activated = authenticated = reconciled = False
        while True:
            attempt += 1
            started = timing.monotonic()
            left = settings.retry.seconds - (started - began)
            request = write(self._dialect)
            answer: Answer | None = None
            failure: AAPError | A2AError | TransportError
            try:
                headers = await self._headers(challenge)
                payload, answer = await self._carrier.send(
                    SKILLS[skill_id], request, self._dialect, headers, max(0.001, min(settings.timeout, left))
                )
            except (AAPError, A2AError, TransportError) as error:
                failure = error
            except BaseException:
                if submission is not None:
                    submission.uncertain = True
                raise
            else:
                self._tell(skill_id, attempt, timing.monotonic() - started, request, answer, None, None)
                return payload
            answer = failure.raw if isinstance(failure.raw, Answer) else None
            if submission is not None:
                submission.uncertain = _outcome_is_uncertain(failure, submission.uncertain)
            elapsed = timing.monotonic() - began
            wait: float | None = None
            if not activated and self._activate(failure, submission):
                activated, wait = True, 0.0
            elif not authenticated and callable(settings.credentials) and _wants_credentials(failure):
                # New proofs for the same request; the dealer has not looked at it yet.
                authenticated, wait, challenge = True, 0.0, failure.challenge or ""  # type: ignore[union-attr]
            else:
                headers_back = answer.headers if answer else {}
                decision = decide(
                    failure, attempt, elapsed, headers_back, settings.retry, timing.now(), timing.chance()
                )
                wait = decision.seconds if isinstance(decision, Wait) else None
                if wait is None and submission is not None and not reconciled and _is_unanswered(failure):
                    # Not tried again for its own sake: the same key tells what became of the lead.
                    reconciled = True
                    pause = settings.retry.first_wait
                    fits = attempt < settings.retry.tries and elapsed + pause < settings.retry.seconds
                    wait = pause if fits else None
            self._tell(skill_id, attempt, timing.monotonic() - started, request, answer, failure, wait)
            if wait is None:
                raise failure
            if wait:
                await timing.sleep(wait)

    def _activate(self, failure: Exception, submission: Submission | None) -> bool:
        """Take up the contract that an activation error names, if this client implements exactly that one.

        A hint implements nothing: an unknown URI, a contract that the caller has pinned, and a lead that would have to
        be written anew are left as they are ("Activation recovery").
        """
        if not isinstance(failure, A2AError) or failure.code != ErrorCode.EXTENSION_SUPPORT_REQUIRED:
            return False
        if self._settings.on_stale_card is not None:
            self._settings.on_stale_card()
        named = _named_extension(failure)
        found = dialect_of_uri(named) if named else None
        if found is None or submission is not None or self._settings.contract_is_pinned:
            return False
        self._dialect = found
        return True

    async def _headers(self, challenge: str | None) -> Mapping[str, str]:
        """Return the credentials for the endpoint, none where it is not of an origin that they belong to."""
        given = self._settings.credentials
        if given is None:
            return {}
        trusted = {origin(self.site), *map(origin, self._settings.trust)}
        if origin(self.endpoint) not in trusted:
            return {}
        made = given(challenge) if callable(given) else given
        return await made if inspect.isawaitable(made) else made

    def _tell(
        self,
        skill_id: str,
        attempt: int,
        seconds: float,
        request: Mapping[str, Any],
        answer: Answer | None,
        failure: Exception | None,
        wait: float | None,
    ) -> None:
        hook, bodies = self._settings.hook, self._settings.hook_sees_bodies
        if hook is None:
            return
        seen = Try(
            skill_id,
            self.contract,
            self.binding,
            shown(self.endpoint),
            attempt,
            seconds,
            outcome_of(failure),
            answer.status if answer else None,
            failure.error_id if isinstance(failure, AAPError) else None,
            wait,
            request if bodies else None,
            answer.body if bodies and answer else None,
        )
        try:
            hook(seen)
        except Exception as error:
            # A lead that was accepted must not look lost because somebody's log was full.
            _log.error("the hook of a client failed: %s", type(error).__name__)

    def _dealer(self) -> str:
        scheme, host, port = origin(self.site)
        return f"{scheme}://{host}:{port}"


def submission_of(error: BaseException) -> Submission | None:
    """Return the submission that a failure of `lead.submit` was about, None for any other failure."""
    found = vars(error).get("submission")
    return found if isinstance(found, Submission) else None


def _attach(error: Exception, submission: Submission) -> None:
    vars(error)["submission"] = submission


def keep_pending(submission: Submission, path: str | os.PathLike[str]) -> Submission:
    """Keep a submission in a file before it is sent."""
    return pending.keep(submission, path)


def _identity(vehicle: Vehicle) -> str:
    own = vehicle.vehicle_id or vehicle.vin or vehicle.stock
    return f"{vehicle.dealer_id or ''}\0{own}" if own else repr(sorted(vehicle.raw.items(), key=str))


def _named_extension(failure: A2AError) -> str | None:
    """Return the extension URI that an activation error asks for by the A2A-Extensions header."""
    for entry in failure.data if isinstance(failure.data, list) else ():
        metadata = entry.get("metadata") if isinstance(entry, dict) else None
        if isinstance(metadata, dict) and metadata.get("requiredHeader") == envelope.EXTENSIONS_HEADER:
            uri = metadata.get("extensionUri")
            return uri if isinstance(uri, str) else None
    return None


def _wants_credentials(failure: Exception) -> bool:
    return isinstance(failure, TransportError) and failure.kind is FailureKind.AUTH_REQUIRED and failure.status == 401


_REFUSED: Final = frozenset({400, 401, 403, 404, 405, 406, 413, 415, 422, 429})
"""Statuses by which a request was turned away."""


def _outcome_is_uncertain(failure: AAPError | A2AError | TransportError, before: bool) -> bool:
    """Tell whether the dealer may have the lead after this failure.

    An answer of the skill settles it either way, and so also an earlier doubt; only INTERNAL_ERROR and a conflict about
    the key leave it open. That this try certainly did no harm says nothing of the ones before it.
    """
    if isinstance(failure, AAPError):
        if failure.code in ("INTERNAL_ERROR", "IDEMPOTENCY_CONFLICT") or failure.code not in _SETTLED:
            return True
        return before and failure.retryable
    if isinstance(failure, A2AError):
        return before or failure.code in (ErrorCode.INTERNAL_ERROR, ErrorCode.INVALID_AGENT_RESPONSE)
    return before or (failure.sent and failure.status not in _REFUSED)


_SETTLED: Final = frozenset(
    {
        "UNSUPPORTED_SKILL", "SCHEMA_VALIDATION_FAILED", "MISSING_REQUIRED_FIELD", "INVALID_CONDITION",
        "DEALER_NOT_FOUND", "VEHICLE_NOT_FOUND", "VEHICLE_UNAVAILABLE", "CONTACT_CONSENT_REQUIRED", "INVALID_CONSENT",
        "APPOINTMENT_TIME_UNAVAILABLE", "RATE_LIMITED",
    }
)  # fmt: skip
"""Codes after which the dealer has no lead of this submission; a dealer replays a known key before it checks these."""


def _is_unanswered(failure: Exception) -> bool:
    """Tell whether a dealer took a request and answered it with nothing that can be read: a page, a 500."""
    return (
        isinstance(failure, TransportError)
        and failure.kind in (FailureKind.UNREADABLE, FailureKind.STATUS)
        and failure.status not in _REFUSED
    )


def _is_last_word(error: AAPError | A2AError | TransportError) -> bool:
    """Tell whether nothing more can come of a submission: what its file holds is of no use any more."""
    return isinstance(error, AAPError) and not error.retryable
