"""What `SchemaSet` says about a payload ("Errors and retries", section "One automotive error")."""

import json
from collections.abc import Iterator
from random import Random
from typing import Any

import jsonschema_rs
import pytest
from tests.contract.payload_maker import broken, make

from forecourt.contract.phrase import for_keyword, is_identifier
from forecourt.contract.validation import SchemaSet
from forecourt.contract.violation import CUT_HINT, PROBLEM_LIMIT
from forecourt.errors import Problem

V11 = SchemaSet.load("1.1")
V31 = SchemaSet.load("3.1")
SEARCH = "inventory-search-request.schema.json"
LEAD = "lead-submit-request.schema.json"
DETAIL = "vehicle-detail-request.schema.json"


def search(**fields: Any) -> dict[str, Any]:
    return {"type": "inventory.search.request", **fields}


def lead(**fields: Any) -> dict[str, Any]:
    return {
        "type": "lead.submit.request",
        "customer": {"first_name": "Sam", "last_name": "Example", "email": "sam@example.com"},
        "consent": {
            "granted_at": "2026-04-30T10:16:00Z",
            "allowed_channels": ["email"],
            "consent_text": "I agree.",
            "scope": ["lead_submission"],
        },
        "source_agent": {"name": "example-shopper"},
        **fields,
    }


def customer(**fields: Any) -> dict[str, Any]:
    return {"first_name": "Sam", "last_name": "Example", "email": "sam@example.com", **fields}


@pytest.mark.requirement("ERR-DETAILS-POINTER", "ERR-DETAILS-KEYWORD", "ERR-DETAILS-EXPLANATION")
@pytest.mark.parametrize(
    ("file", "payload", "location", "keyword", "sentence"),
    [
        (SEARCH, search(filters={"year_min": "2020"}), "/filters/year_min", "type",
         "filters.year_min must be an integer"),
        (SEARCH, search(filters={"year_min": True}), "/filters/year_min", "type",
         "filters.year_min must be an integer"),
        (SEARCH, search(filters={"year_min": 2020.5}), "/filters/year_min", "type",
         "filters.year_min must be an integer"),
        (SEARCH, search(filters={"year_min": 1899}), "/filters/year_min", "minimum",
         "filters.year_min must be at least 1900"),
        (SEARCH, search(filters={"year_max": 2101}), "/filters/year_max", "maximum",
         "filters.year_max must be at most 2100"),
        (SEARCH, search(filters={"condition": ["new", "old"]}), "/filters/condition/1", "enum",
         "filters.condition.1 must be one of `new`, `used`, `cpo`"),
        (SEARCH, search(filters={"vin": "1HGCV1F30NA12345O"}), "/filters/vin", "pattern",
         "filters.vin must be 17 characters A-Z and 0-9 without I, O and Q"),
        (SEARCH, search(filters={"query": "x" * 201}), "/filters/query", "maxLength",
         "filters.query must be at most 200 characters long"),
        (SEARCH, search(sort={"field": "price"}), "/sort", "required", "sort needs the field `order`"),
        (SEARCH, search(filters={"makes": ["Kia"]}), "/filters/makes", "additionalProperties",
         "filters.makes is not a known field"),
        (SEARCH, {"type": "inventory.search"}, "/type", "const", "type must be `inventory.search.request`"),
        (SEARCH, {}, "", "required", "the request needs the field `type`"),
        (SEARCH, [], "", "type", "the request must be an object"),
        (DETAIL, {"type": "inventory.vehicle.request"}, "", "anyOf",
         "the request needs at least one of `vin`, `stock`, `vehicle_id`"),
        (LEAD, lead(customer={"first_name": "Sam", "last_name": "Example"}), "/customer", "anyOf",
         "customer needs at least one of `email`, `phone`"),
        (LEAD, lead(customer=customer(phone="14155550123")), "/customer/phone", "pattern",
         "customer.phone must be a phone number in E.164 form: a plus sign, the country code, digits only"),
        (LEAD, lead(customer=customer(email="sam")), "/customer/email", "format",
         "customer.email must be an email address"),
        (LEAD, lead(submitted_at="2026-05-03T11:00:00"), "/submitted_at", "format",
         "submitted_at must be a date-time with an offset, like 2026-05-03T11:00:00-07:00"),
        (LEAD, lead(trade_in={"inventory_date": "2026-02-29"}), "/trade_in/inventory_date", "format",
         "trade_in.inventory_date must be a date, like 2026-05-03"),
        (LEAD, lead(source_agent={"name": "a", "url": "example"}), "/source_agent/url", "format",
         "source_agent.url must be an absolute URI, like https://www.example.com/"),
        (LEAD, lead(source_agent={"name": ""}), "/source_agent/name", "minLength",
         "source_agent.name must not be empty"),
        (LEAD, lead(trade_in={"condition": "new"}), "/trade_in/condition", "enum",
         "trade_in.condition must be one of `excellent`, `good`, `fair`, `poor`"),
        (LEAD, lead(vehicle_of_interest={"condition": "shiny"}), "/vehicle_of_interest/condition", "enum",
         "vehicle_of_interest.condition must be one of `new`, `used`, `cpo`"),
        (LEAD, lead(vehicle_of_interest={"rooftop": 1}), "/vehicle_of_interest/rooftop", "type",
         "vehicle_of_interest.rooftop must be a string or null"),
    ],
)  # fmt: skip
def test_a_violation_names_its_place_its_keyword_and_the_rule(
    file: str, payload: Any, location: str, keyword: str, sentence: str
) -> None:
    for schemas in (V11, V31):
        assert not schemas.is_valid(file, payload)
        (problem,) = schemas.problems(file, payload)
        assert (problem.location, problem.keyword, problem.sentence) == (location, keyword, sentence)
        assert problem.to_payload() == {"instanceLocation": location, "keyword": keyword, "error": problem.error}


@pytest.mark.requirement("ERR-DETAILS-EVERY-PROBLEM")
def test_every_violation_is_listed_in_order() -> None:
    payload = search(filters={"year_min": "2020", "price_max": -1}, pagination={"limit": 0}, sort={})
    assert [(p.location, p.keyword) for p in V11.problems(SEARCH, payload)] == [
        ("/filters/price_max", "minimum"),
        ("/filters/year_min", "type"),
        ("/pagination/limit", "minimum"),
        ("/sort", "required"),
        ("/sort", "required"),
    ]


def test_the_order_of_the_members_sent_does_not_matter() -> None:
    payload = {"b": 1, "a": 2, "filters": {"z": 1, "y": 2, "make": 3}}
    turned = {"filters": {"make": 3, "y": 2, "z": 1}, "a": 2, "b": 1}
    assert V31.problems(SEARCH, payload) == V31.problems(SEARCH, turned)


def test_repeated_entries_and_wrong_lengths_of_arrays_are_told_apart() -> None:
    consent = lead()["consent"] | {"allowed_channels": ["sms", "sms"], "scope": []}
    assert [p.sentence for p in V11.problems(LEAD, lead(consent=consent))] == [
        "consent.allowed_channels must not repeat an entry",
        "consent.scope needs at least one entry",
    ]


def test_of_one_wrong_day_the_closing_time_is_named() -> None:
    hours = {"monday": {"open": "9:00", "close": "18:00"}, "sunday": None, "friday": "closed"}
    dealer = {"name": "Demo", "rooftops": [{"name": "North", "schedules": [{"value": hours}]}]}
    place = "rooftops.0.schedules.0.value"
    assert [p.sentence for p in V11.problems("dealer-information.schema.json", dealer)] == [
        f"{place}.friday must be an object or null",
        f"{place}.monday.open must be a time HH:MM between 00:00 and 23:59",
    ]


def test_the_given_location_comes_first() -> None:
    (problem,) = V11.problems(SEARCH, search(skip=0), "/params/message/parts/0/data")
    assert problem.location == "/params/message/parts/0/data/skip"


@pytest.mark.requirement("ERR-DETAILS-POINTER")
def test_a_pointer_is_escaped() -> None:
    schema = {"$id": "https://example.com/a.schema.json", "properties": {"a/b~c": {"type": "string"}}}
    schemas = SchemaSet({"a.schema.json": json.dumps(schema).encode()})
    (problem,) = schemas.problems("a.schema.json", {"a/b~c": 1})
    assert problem.location == "/a~1b~0c"  # RFC 6901, section 3


@pytest.mark.requirement("ERR-DETAILS-CORRECTION")
@pytest.mark.parametrize(
    ("schemas", "payload", "hint"),
    [
        (V11, search(filters={"min_price": 1}), "`filters.min_price` is unknown; did you mean `price_min`?"),
        (V11, search(filters={"priceMax": 1}), "`filters.priceMax` is unknown; did you mean `price_max`?"),
        (V11, search(filters={"brand": ["Kia"]}), "`filters.brand` is unknown; did you mean `make`?"),
        (V11, search(filters={"color": ["red"]}), "`filters.color` is unknown; did you mean `exterior_color`?"),
        (V11, search(filters={"body_type": ["suv"]}), "`filters.body_type` is unknown; did you mean `body`?"),
        (V11, search(filters={"milage_max": 1}), "`filters.milage_max` is unknown; did you mean `mileage_max`?"),
        (V11, search(make=["Kia"]), "`make` belongs inside `filters`."),
        (V11, search(max_price=1), "`max_price` is unknown; did you mean `price_max` inside `filters`?"),
        (V11, search(filters={"limit": 5}), "`limit` belongs inside `pagination`."),
        (V11, search(pagination={"offset": 5}), "`pagination.offset` is unknown; did you mean `skip`?"),
        (V11, search(page=2), "Pages are chosen by `pagination.skip` and `pagination.limit`."),
        (V31, search(filters={"features": ["x"]}), "`filters.features` is unknown; did you mean `features_all`?"),
        (V31, search(filters={"dealer_id": "a"}), "`dealer_id` belongs at the top level."),
        (V11, search(filters={"make": "Kia"}), "`filters.make` takes an array, also for a single value."),
        (V11, search(filters={"year_min": "2020"}), "`filters.year_min` takes a number without quotes."),
        (V11, search(privacy={"anonymous": "y"}), "`privacy.anonymous` takes true or false without quotes."),
        (V11, search(filters={"condition": ["Certified"]}), "`filters.condition.0`: did you mean `cpo`?"),
        (V11, search(filters={"condition": ["NEW"]}), "`filters.condition.0`: did you mean `new`?"),
        (V11, search(filters={"wheels": 4}), None),
        (V11, search(filters={"condition": ["shiny"]}), None),
    ],
)  # fmt: skip
def test_a_usual_mistake_gets_a_correction(schemas: SchemaSet, payload: Any, hint: str | None) -> None:
    (problem,) = schemas.problems(SEARCH, payload)
    assert problem.hint == hint


@pytest.mark.parametrize("name", ["skip", "offset", "page"])
def test_contract_3_1_says_that_it_pages_with_a_cursor(name: str) -> None:
    for payload in (search(pagination={name: 0}), search(**{name: 0})):
        (problem,) = V31.problems(SEARCH, payload)
        assert problem.hint is not None
        assert "`pagination.cursor`" in problem.hint


def test_a_near_miss_of_a_status_is_corrected() -> None:
    listing = {"type": "inventory.vehicle.response", "data": {"status": "In-Transit"}}
    (problem,) = V31.problems("vehicle-detail-response.schema.json", listing)
    assert problem.hint == "`data.status`: did you mean `intransit`?"


@pytest.mark.requirement("ERR-DETAILS-NO-CUSTOMER-VALUE")
@pytest.mark.parametrize(
    "name", ["sam@example.com", "Sam Example", "", "a/b", "x" * 41, "+14155550123", "\u00e9", "a\n"]
)
def test_a_name_that_may_be_data_is_not_repeated(name: str) -> None:
    (problem,) = V31.problems(SEARCH, search(**{name: 1}))
    assert problem == Problem("", "additionalProperties", "has fields with unknown names")
    assert problem.hint is None
    attributes = lead(trade_in={"other_attributes": {name: None}})
    (problem,) = V31.problems(LEAD, attributes)
    assert (problem.location, problem.keyword) == ("/trade_in/other_attributes", "additionalProperties")


@pytest.mark.requirement("ERR-DETAILS-NO-CUSTOMER-VALUE")
def test_no_value_is_ever_repeated() -> None:
    """Every text that the customer could have typed is replaced by a marker, which must then not come back."""
    marker = "QzMarkerqZ"
    for schemas in (V11, V31):
        for file in schemas.files():
            random = Random(file)
            for _ in range(20):
                payload = _marked(broken(make(schemas.inlined(file), random), random), marker)
                for problem in schemas.problems(file, payload):
                    said = f"{problem.location} {problem.error} {problem.hint}"
                    assert marker.lower() not in said.lower(), said


def _marked(value: Any, marker: str) -> Any:
    if isinstance(value, dict):
        return {name: _marked(inner, marker) for name, inner in value.items()}
    if isinstance(value, list):
        return [_marked(inner, marker) for inner in value]
    return marker if isinstance(value, str) else value


@pytest.mark.requirement("ERR-DETAILS-EVERY-PROBLEM")
@pytest.mark.parametrize("version", ["1.1", "3.1"])
def test_the_problems_are_those_that_the_engine_itself_finds(version: str) -> None:
    """jsonschema-rs lists violations too (in words that quote values): places and keywords must be the same."""
    schemas = SchemaSet.load(version)
    compared = 0
    for file in schemas.files():
        random = Random(file)
        schema = schemas.inlined(file)
        engine = jsonschema_rs.Draft202012Validator(schema, validate_formats=True)
        for _ in range(80):
            payload = broken(make(schema, random), random)
            ours = {(problem.location, problem.keyword) for problem in schemas.problems(file, payload)}
            if len(ours) == PROBLEM_LIMIT:
                continue
            theirs = {place for error in engine.iter_errors(payload) for place in _as_reported(error)}
            for location, _ in [place for place in theirs if place[1] == "oneOf" and place not in ours]:
                # Of alternatives, the one that was meant is looked into.
                inside = {place for place in ours if place[0].startswith(location)}
                assert inside
                ours -= inside
                theirs.discard((location, "oneOf"))
            assert ours == theirs, json.dumps(payload)
            compared += bool(theirs)
    assert compared > 800


def _as_reported(error: jsonschema_rs.ValidationError) -> Iterator[tuple[str, str]]:
    kind = error.kind.as_dict()
    keyword = str(error.schema_path[-1])
    path = error.instance_path
    names = [(number, step) for number, step in enumerate(path) if isinstance(step, str)]
    odd = [number for number, name in names if not is_identifier(name)]
    if odd:
        # Below a member whose name may be data, the member's parent is named.
        yield _pointer(path[: odd[0]]), "additionalProperties"
    elif "unexpected" in kind:
        for name in kind["unexpected"]:
            yield _pointer([*path, name] if is_identifier(name) else path), keyword
    else:
        yield _pointer(path), {"maxContains": "contains", "minContains": "contains"}.get(keyword, keyword)


def _pointer(path: list[str | int]) -> str:
    return "".join(f"/{step}" for step in path)


def test_a_body_full_of_errors_gets_the_first_hundred_and_is_told_so() -> None:
    problems = V11.problems(SEARCH, search(filters={"make": [0] * 200_000}))
    assert len(problems) == PROBLEM_LIMIT == 100
    assert problems[0].hint == CUT_HINT
    assert {problem.keyword for problem in problems} == {"type"}
    many = search(filters={"year_min": "x", **{f"unknown_{number}": 1 for number in range(50_000)}})
    assert len(V11.problems(SEARCH, many)) == PROBLEM_LIMIT


def test_exactly_a_hundred_problems_are_all_of_them() -> None:
    problems = V11.problems(SEARCH, search(filters={"make": [0] * 100}))
    assert len(problems) == 100
    assert all(problem.hint is None for problem in problems)


def test_one_wrong_entry_is_found_among_many_good_ones() -> None:
    (problem,) = V11.problems(SEARCH, search(filters={"make": [*["Kia"] * 5000, 1, *["Kia"] * 5000]}))
    assert problem.location == "/filters/make/5000"


def test_an_integral_number_is_an_integer() -> None:
    """JSON Schema 2020-12 core, section 4.2.1: a number without a fraction is one, however it is written."""
    assert V11.is_valid(SEARCH, search(filters={"price_max": 26780.0, "year_min": 2020.0}))
    assert V11.is_valid(SEARCH, search(filters={"price_max": 10**400}))
    assert [p.keyword for p in V11.problems(SEARCH, search(filters={"year_max": 10**400}))] == ["maximum"]


@pytest.mark.parametrize(
    "payload",
    [search(filters={"vin": "\udfff"}), search(**{"\ud800": 1}), search(filters={"condition": ["\ud800"]})],
)
def test_a_lone_surrogate_is_refused_without_an_exception(payload: Any) -> None:
    assert not V31.is_valid(SEARCH, payload)
    problems = V31.problems(SEARCH, payload)
    assert problems
    for problem in problems:
        json.dumps(problem.to_payload(), ensure_ascii=False).encode()


def test_a_lone_surrogate_in_free_text_raises_nothing() -> None:
    """Only the type of such a text is looked at; whoever parses JSON strictly never gets this far."""
    payload = lead(message="\ud800", trade_in={"x_dealer": ["\ud800"]}, source_agent={"name": "\ud800"})
    assert V31.is_valid(LEAD, payload) is (V31.problems(LEAD, payload) == [])


def test_deep_nesting_is_refused_or_passed_without_an_exception() -> None:
    deep: Any = {}
    for _ in range(100):
        deep = {"a": [deep]}
    assert V31.problems(SEARCH, search(filters=deep))[0].location == "/filters/a"
    assert V31.is_valid(LEAD, lead(trade_in={"x_dealer": deep}))
    assert not V31.is_valid(LEAD, lead(trade_in={"other_attributes": deep}))
    assert not V31.is_valid(LEAD, lead(consent=lead()["consent"] | {"scope": [deep, deep]}))


@pytest.mark.parametrize("version", ["1.1", "3.1"])
def test_an_inlined_schema_refers_to_nothing_and_decides_the_same(version: str) -> None:
    schemas = SchemaSet.load(version)
    documents = {file: json.loads(schemas.text(file)) for file in schemas.files()}
    registry = jsonschema_rs.Registry([(document["$id"], document) for document in documents.values()])
    for file, document in documents.items():
        inlined = schemas.inlined(file)
        assert '"$ref"' not in json.dumps(inlined)
        assert "$id" not in inlined
        published = jsonschema_rs.Draft202012Validator(document, registry=registry, validate_formats=True)
        random = Random(file)
        for _ in range(40):
            payload = make(inlined, random)
            for one in (payload, broken(payload, random)):
                assert schemas.is_valid(file, one) is published.is_valid(one), json.dumps(one)


def test_changing_an_inlined_schema_changes_nothing_else() -> None:
    schema = V31.inlined(SEARCH)
    schema["properties"]["filters"]["properties"].clear()
    assert "make" in V31.inlined(SEARCH)["properties"]["filters"]["properties"]
    assert V31.is_valid(SEARCH, search(filters={"make": ["Kia"]}))


def test_a_description_beside_a_reference_replaces_the_general_one() -> None:
    trade_in = V11.inlined(LEAD)["properties"]["trade_in"]
    assert "trade in" in trade_in["description"]
    assert trade_in["properties"]["vin"]["pattern"] == "^[A-HJ-NPR-Z0-9]{17}$"


def test_a_rule_beside_a_reference_holds_as_well() -> None:
    schema = {
        "$id": "https://example.com/a.schema.json",
        "$defs": {"n": {"minimum": 1}},
        "properties": {"n": {"$ref": "#/$defs/n", "maximum": 2}},
    }
    schemas = SchemaSet({"a.schema.json": json.dumps(schema).encode()})
    assert [schemas.is_valid("a.schema.json", {"n": n}) for n in (0, 1, 2, 3)] == [False, True, True, False]


def test_a_schema_that_refers_to_itself_is_refused() -> None:
    schema = {
        "$id": "https://example.com/a.schema.json",
        "$defs": {"n": {"items": {"$ref": "#/$defs/n"}}},
        "$ref": "#/$defs/n",
    }
    schemas = SchemaSet({"a.schema.json": json.dumps(schema).encode()})
    with pytest.raises(ValueError, match="refers to itself"):
        schemas.is_valid("a.schema.json", [])


def test_an_unknown_version_or_file_is_a_key_error() -> None:
    for version in ("1.2", "", "..", "3.1/_primitives"):
        with pytest.raises(KeyError):
            SchemaSet.load(version)
    with pytest.raises(KeyError):
        V11.is_valid("nothing.schema.json", {})
    with pytest.raises(KeyError):
        V11.text("../3.1/vehicle.schema.json")


def test_a_version_is_read_once() -> None:
    assert SchemaSet.load("3.1") is V31


@pytest.mark.requirement("ERR-DETAILS-EXPLANATION")
@pytest.mark.parametrize("version", ["1.1", "3.1"])
def test_every_rule_of_the_schemas_has_words(version: str) -> None:
    structure = {"properties", "items", "required", "additionalProperties", "allOf", "anyOf", "oneOf", "if", "then"}
    beside = {"$schema", "title", "description", "examples", "minContains", "maxContains"}
    schemas = SchemaSet.load(version)
    for file in schemas.files():
        for rule in _rules(schemas.inlined(file)):
            for keyword in rule.keys() - structure - beside:
                said = for_keyword(rule, keyword)
                assert "schema" not in said, (file, keyword)
                assert "pattern" not in said, (file, keyword, said)
                assert not said.startswith("must have the format"), (file, keyword, said)


def _rules(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield schema
    for keyword in ("items", "if", "then", "additionalProperties"):
        if isinstance(schema.get(keyword), dict):
            yield from _rules(schema[keyword])
    for branch in [b for keyword in ("allOf", "anyOf", "oneOf") for b in schema.get(keyword, ())]:
        yield from _rules(branch)
    for child in schema.get("properties", {}).values():
        yield from _rules(child)
