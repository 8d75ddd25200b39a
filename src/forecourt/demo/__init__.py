"""The packaged demo dealer: a group of two rooftops in two time zones, with stock made by
`forecourt.demo.stock`.

Names, addresses and numbers are made up (example.com, 555-01xx). The profile is in `dealer.json`, the
makes, models and equipment that the stock is drawn from in `catalogue.json`.
"""

import json
from importlib import resources
from typing import Any, Final

__all__ = ["DEALER_ID", "profile"]

DEALER_ID: Final = "demo-auto-group"
"""The seller's `dealer_id`."""


def profile() -> dict[str, Any]:
    """Return the public profile as `dealer.information` of 3.1 has it, with the `fees` of each rooftop.

    Every call returns a fresh object. Without `rooftops[].fees` it fits the dealer-information schema of 1.1.
    """
    loaded: dict[str, Any] = json.loads(resources.files(__name__).joinpath("dealer.json").read_bytes())
    return loaded
