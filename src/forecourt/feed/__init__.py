"""Dealers' inventory files, as they really are, turned into AAP vehicles and an honest report.

`open_feed` unpacks a file, `read_feed` gives its vehicles, `Report` says what became of every row. No network, no
store: where the bytes come from and where the vehicles go is others' business.
"""

from forecourt.feed.body import Kept, KeptBodies, read_bodies
from forecourt.feed.error import FeedError
from forecourt.feed.options import Fee, FeedOptions
from forecourt.feed.read import read_feed
from forecourt.feed.report import Finding, Report
from forecourt.feed.source import Expansion, open_feed
from forecourt.feed.worker import Tracked, can_read_beside, read_beside

__all__ = [
    "Expansion",
    "Fee",
    "FeedError",
    "FeedOptions",
    "Finding",
    "Kept",
    "KeptBodies",
    "Report",
    "Tracked",
    "can_read_beside",
    "open_feed",
    "read_beside",
    "read_bodies",
    "read_feed",
]
