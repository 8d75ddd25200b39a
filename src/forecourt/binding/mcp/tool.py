"""The tools of one contract: what a model is told about each skill, and the schemas of its arguments and results.

The input schema is the contract's request schema made smaller: without references, without what this deployment has
switched off, and without rules at its root that model providers refuse (`anyOf` and the like). What it leaves out, the
contract still checks. The output schema allows an `aap.error` beside the response, since clients check the results of
failed calls against it too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from forecourt.binding.json_text import encode
from forecourt.binding.mcp.argument import reader
from forecourt.binding.mcp.icon import icon
from forecourt.contract import Contract, Skill

__all__ = ["Tool", "Toolbox", "tool_name"]

_ERROR_SCHEMA: Final = "error.schema.json"
_FEATURE_FILTERS: Final = ("features_all", "features_any", "features_none")
_LISTINGS: Final = (
    "Every listing says its status (available, intransit: on its way, pending: being bought by somebody) and how fresh"
    " it is (updated_at): pass that on."
)
_MONEY: Final = (
    "Money is whole US dollars, distance is miles. `price` is what the buyer pays to the dealer, with every mandatory"
    " fee in it: do not add `fees` to it. A vehicle without `price` has none published: say so, never estimate one."
)


@dataclass(frozen=True)
class _Words:
    """What a model is told of one skill: a title for people, and how to use it."""

    title: str
    description: str
    icon: str


_WORDS: Final[Mapping[str, _Words]] = {
    "dealer.information": _Words(
        "Dealer information",
        "Who the dealership is: its rooftops (locations) with addresses, opening hours in their own time zone, phone"
        " numbers, services and what each rooftop hosts. Call it before you speak of hours, places or visits.",
        "house",
    ),
    "inventory.facets": _Words(
        "What is in stock",
        "Counts of the stock per make, model, year, condition, fuel and more, and the ranges of price, mileage and"
        " year, for all of it or for the part that `filters` leave. Use it to learn which values exist before you"
        " search, or to answer how many there are. Text filters match whole values: take them from here.",
        "chart",
    ),
    "inventory.search": _Words(
        "Search the stock",
        "Find vehicles in stock. All filters must hold together; in a list any one value is enough. Send no personal"
        " data: a search needs none.",
        "lens",
    ),
    "inventory.vehicle": _Words(
        "One vehicle",
        "One listing in full. Give at least one of `vin`, `vehicle_id` and `stock` as a search returned it."
        " VEHICLE_UNAVAILABLE means that it was here and is gone: tell the shopper and search again.",
        "car",
    ),
    "lead.submit": _Words(
        "Contact the dealer",
        "Hand the shopper's enquiry, with any of a vehicle of interest, a trade-in and an appointment, to the"
        " dealership: people there will get in touch. Only with the shopper's consent, asked for this submission: show"
        " what will be shared, with whom and why, wait for a clear yes, and put the words that were shown into"
        " `consent.consent_text`, the time of the yes into `consent.granted_at`, and only the channels that were agreed"
        ' into `consent.allowed_channels`; `consent.scope` is ["lead_submission"]. A test drive needs a'
        " `vehicle_of_interest`. Make an `idempotency_key` (a UUID) before the first try, and send the very same"
        " arguments and key again if the outcome is uncertain: never a new key. Read the outcome: the lead may be"
        " received while the appointment is only proposed with other times.",
        "letter",
    ),
}


def tool_name(skill_id: str) -> str:
    """Return the name of a skill's tool: `inventory.search` is aap_inventory_search."""
    return f"aap_{skill_id.replace('.', '_')}"


class Tool:
    """One skill of one contract as a tool."""

    def __init__(self, contract: Contract, skill: Skill) -> None:
        self.skill = skill
        self.name = tool_name(skill.id)
        self._contract = contract

    @cached_property
    def read_arguments(self) -> Any:
        """What reads the JSON strings among arguments."""
        return reader(self._contract.schemas.inlined(self.skill.request_schema))

    def to_payload(self) -> dict[str, Any]:
        """Return the tool as `tools/list` shows it."""
        words = _WORDS[self.skill.id]
        return {
            "name": self.name,
            "title": words.title,
            "description": f"{words.description}{self._particulars()}",
            "icons": [icon(words.icon)],
            "inputSchema": self.input_schema(),
            "outputSchema": self.output_schema(),
            "annotations": {
                "title": words.title,
                "readOnlyHint": not self.skill.writes,
                # A lead adds something; one that comes twice, by its key or by its content, is stored once.
                "destructiveHint": False,
                "idempotentHint": True,
                # A lead reaches people outside; everything else is answered from the dealer's own stock.
                "openWorldHint": self.skill.writes,
            },
        }

    def input_schema(self) -> dict[str, Any]:
        """Return the schema of the arguments: an object, without references, narrowed to what is offered."""
        schema = self._contract.schemas.inlined(self.skill.request_schema)
        properties: dict[str, Any] = schema["properties"]
        for rule in schema.get("allOf", ()):
            _fold(properties, rule)
        if "filters" in properties:
            self._narrow_filters(properties["filters"]["properties"])
        if "sort" in properties:
            self._narrow_sort(properties)
        properties["type"] = {"description": "May be left out: the tool says it.", "const": self.skill.request_type}
        narrowed = {
            "type": "object",
            "properties": properties,
            "required": [name for name in schema["required"] if name != "type"],
            "additionalProperties": schema["additionalProperties"],
        }
        if not narrowed["required"]:
            # Some readers take an empty list for a mistake.
            del narrowed["required"]
        return narrowed

    def output_schema(self) -> dict[str, Any]:
        """Return the schema of structured results: the response, or the error."""
        response = self._contract.schemas.inlined(self.skill.response_schema)
        error = self._contract.schemas.inlined(_ERROR_SCHEMA)
        # A client takes a schema that names a dialect for one of another kind than its own; 2020-12 is MCP's default.
        for schema in (response, error):
            schema.pop("$schema", None)
            schema.pop("examples", None)
        return {
            "type": "object",
            "properties": {"type": {"type": "string", "enum": [self.skill.response_type, "aap.error"]}},
            "required": ["type"],
            "anyOf": [response, error],
        }

    def _narrow_filters(self, filters: dict[str, Any]) -> None:
        offered = self._contract.offer.capabilities
        for name in list(filters):
            is_on = offered.free_text if name == "query" else name in offered.filters
            if name in _FEATURE_FILTERS:
                filters[name]["items"] = {"type": "string", "enum": list(offered.feature_codes)}
                is_on = is_on and bool(offered.feature_codes)
            if not is_on:
                del filters[name]

    def _narrow_sort(self, properties: dict[str, Any]) -> None:
        offered = self._contract.offer.capabilities.sort_fields
        if not offered:
            del properties["sort"]
            return
        field = properties["sort"]["properties"]["field"]
        known = field.get("enum")
        for rule in ("pattern", "maxLength"):
            field.pop(rule, None)
        field["enum"] = [name for name in offered if known is None or name in known]
        field["description"] = "What to sort by. Vehicles that lack it come last, in both directions."

    def _particulars(self) -> str:
        """Return what depends on the contract and the deployment."""
        properties = self._contract.schemas.inlined(self.skill.request_schema)["properties"]
        lines = []
        if self.skill.id == "inventory.search":
            offered = self._contract.offer.capabilities
            lines += [_MONEY, _LISTINGS]
            lines.append(
                f"A page has {offered.default_limit} vehicles unless pagination.limit says otherwise, at most"
                f" {offered.max_limit}; `total` counts all that match."
            )
            if "cursor" in properties["pagination"]["properties"]:
                lines.append(
                    "For the next page repeat the same filters and sort with pagination.cursor set to `next_cursor`;"
                    " there is none on the last page. On INVALID_CURSOR begin again without a cursor."
                )
            else:
                lines.append("For the next page repeat the search with pagination.skip raised by `limit`.")
        elif self.skill.id == "inventory.vehicle":
            lines.append(_MONEY)
        if "dealer_id" in properties and self.skill.id != "inventory.vehicle":
            lines.append("`dealer_id` is needed only where several sellers answer here; listings name theirs.")
        return "".join(f" {line}" for line in lines)


class Toolbox:
    """The tools of one contract, by name and as `tools/list` shows them; made when first asked for."""

    def __init__(self, contract: Contract) -> None:
        self.contract = contract
        self._tools = {tool.name: tool for tool in (Tool(contract, skill) for skill in contract.skills.values())}

    def get(self, name: str) -> Tool | None:
        """Return the tool of this name, None when there is none."""
        return self._tools.get(name)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tools."""
        return tuple(self._tools)

    @cached_property
    def listed(self) -> bytes:
        """The result of `tools/list`: JSON, one text for all places of the contract."""
        return encode({"tools": [tool.to_payload() for tool in self._tools.values()]})


def _fold(properties: dict[str, Any], rule: Mapping[str, Any]) -> None:
    """Put what a conditional rule says of members' members into them: its condition is that they are there."""
    for name, inner in rule.get("then", {}).get("properties", {}).items():
        for member, narrower in inner.get("properties", {}).items():
            properties[name]["properties"][member].update(narrower)
