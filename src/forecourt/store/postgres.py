"""`postgres://…`, the other scheme that PostgreSQL's own tools accept, is the same store as `postgresql://…`."""

from forecourt.store.postgresql import STORE

__all__ = ["STORE"]
