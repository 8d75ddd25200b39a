"""What a dialect is: the extension that names it, and its requests."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from forecourt.contract import SKILLS
from forecourt.model import TERM_FILTERS

__all__ = ["Dialect"]

_LISTS = frozenset({*TERM_FILTERS, "features_all", "features_any", "features_none"})


@dataclass(frozen=True)
class Dialect:
    """One AAP version, as a buyer writes it. Answers need no dialect: they are read with patience.

    `by_cursor` pages with cursors, otherwise by skipping; `sellers` means that requests may name a `dealer_id`.
    """

    version: str
    extension_uri: str
    by_cursor: bool = False
    sellers: bool = False

    def request(self, skill_id: str, members: Mapping[str, Any], dealer_id: str | None = None) -> dict[str, Any]:
        """Return a request payload of these members, those that are None left out.

        Raises ValueError for a seller named in a version that has none.
        """
        if dealer_id is not None and not self.sellers:
            raise ValueError(f"contract {self.version} has no dealer_id; connect to the seller's own address")
        given = {"dealer_id": dealer_id, **members}
        return {
            "type": SKILLS[skill_id].request_type,
            **{name: value for name, value in given.items() if value is not None},
        }

    def search(
        self,
        filters: Mapping[str, Any],
        sort: str | Mapping[str, Any] | None,
        limit: int | None,
        skip: int | None,
        cursor: str | None,
        dealer_id: str | None,
    ) -> dict[str, Any]:
        """Return an `inventory.search` request; `sort` is a field, with a minus for descending.

        Raises ValueError for a way of paging that this version does not have.
        """
        if self.by_cursor and skip:
            raise ValueError(f"contract {self.version} pages by cursor; skip does not exist there")
        if not self.by_cursor and cursor is not None:
            raise ValueError(f"contract {self.version} pages by skip; it has no cursors")
        paging = {"limit": limit, "cursor": cursor, "skip": skip or None}
        members = {
            "filters": self.filters(filters) or None,
            "sort": _sort(sort),
            "pagination": {name: value for name, value in paging.items() if value is not None} or None,
        }
        return self.request("inventory.search", members, dealer_id)

    def filters(self, filters: Mapping[str, Any]) -> dict[str, Any]:
        """Return filters as they travel: what is None left out, a single value of a list filter in a list."""
        return {
            name: [value] if name in _LISTS and isinstance(value, str) else _plain(value)
            for name, value in filters.items()
            if value is not None
        }

    def lead(self, members: Mapping[str, Any], key: str, dealer_id: str | None) -> dict[str, Any]:
        """Return a `lead.submit` request with its idempotency key."""
        return self.request("lead.submit", {**members, "idempotency_key": key}, dealer_id)


def _sort(sort: str | Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    if isinstance(sort, str):
        return {"field": sort.removeprefix("-"), "order": "desc" if sort.startswith("-") else "asc"}
    return sort


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple | set | frozenset) else value
