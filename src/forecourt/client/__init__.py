"""The buyer's side: find a dealer, call its skills, and never change the outcome by trying again.

`forecourt.connect` and `forecourt.connect_sync` are the way in; docs/reference/client.md has the rest.
"""

from forecourt.client.client import Client, submission_of
from forecourt.client.connection import connect
from forecourt.client.consent import ConsentGrant, Disclosure
from forecourt.client.discovery import CARDS, CardCache
from forecourt.client.failure import Answer, DealerError, PagingError, TransportError
from forecourt.client.many import Availability, Comparison, Found, availability, compare, search_dealers
from forecourt.client.pending import PendingError, Submission
from forecourt.client.pending import load as load_pending
from forecourt.client.results import DealerInformation, Facets, Receipt, Record, SearchPage, Vehicle
from forecourt.client.retry import NO_RETRY, RetryPolicy, Timing
from forecourt.client.sync import SyncClient, connect_sync
from forecourt.client.trace import Try

__all__ = [
    "CARDS",
    "NO_RETRY",
    "Answer",
    "Availability",
    "CardCache",
    "Client",
    "Comparison",
    "ConsentGrant",
    "DealerError",
    "DealerInformation",
    "Disclosure",
    "Facets",
    "Found",
    "PagingError",
    "PendingError",
    "Receipt",
    "Record",
    "RetryPolicy",
    "SearchPage",
    "Submission",
    "SyncClient",
    "Timing",
    "TransportError",
    "Try",
    "Vehicle",
    "availability",
    "compare",
    "connect",
    "connect_sync",
    "load_pending",
    "search_dealers",
    "submission_of",
]
