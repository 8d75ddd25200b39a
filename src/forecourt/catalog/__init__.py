"""The search index: an immutable picture, in memory, of the listings that one set of sellers offers.

It is built from the store, answers searches, facets and look-ups, and is replaced as a whole when the
inventory changes; requests never write to it. It knows `model` and nothing else of Forecourt.
"""

from forecourt.catalog.index import Catalog
from forecourt.catalog.listing import Listing
from forecourt.catalog.text import normalise
from forecourt.catalog.walk import Walk

__all__ = ["Catalog", "Listing", "Walk", "normalise"]
