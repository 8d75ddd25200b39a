"""What every contract does: read any request or refuse it, write every reply and every error in its own schema."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.contract.example_requests import VERSIONS, contract, lead, request

from forecourt.contract import SKILLS, Contract, Skill
from forecourt.demo import profile
from forecourt.errors import CODES, AAPError, Problem
from forecourt.model import (
    DealerInformationReply,
    Facets,
    FacetsReply,
    LeadReply,
    Reply,
    Request,
    SearchReply,
    VehicleReply,
)

MARK = "\N{SNOWMAN}mark"
CONTRACTS = {version: contract(version) for version in VERSIONS}
both = pytest.mark.parametrize("served", CONTRACTS.values(), ids=CONTRACTS)

LISTING = {
    "dealer_id": "demo-auto-group",
    "vehicle_id": "v-1",
    "vin": "1HGCY2F57RA000001",
    "stock": "T12345",
    "year": 2022,
    "make": "Honda",
    "model": "Civic",
    "condition": "cpo",
    "price": 26780,
    "status": "available",
    "rooftop": "Demo Toyota San Francisco",
    "updated_at": "2026-04-30T10:15:00Z",
}
BODY = json.dumps(LISTING).encode()


def refusal(served: Contract, payload: Any) -> AAPError:
    """Return the error that reading the payload ends in."""
    with pytest.raises(AAPError) as caught:
        served.read(payload)
    return caught.value


def written(served: Contract, skill: str, reply: Reply) -> dict[str, Any]:
    """Write a reply and return it as read back, after its schema has accepted it."""
    payload: dict[str, Any] = json.loads(served.write(reply))
    assert served.schemas.problems(SKILLS[skill].response_schema, payload) == []
    return payload


# Reading


@both
@pytest.mark.parametrize("skill", SKILLS.values(), ids=SKILLS)
def test_every_skill_is_found_by_its_type_and_read(served: Contract, skill: Skill) -> None:
    assert served.skill_of(request(skill.id)) is skill
    assert type(served.read(request(skill.id))) is skill.request


@both
@pytest.mark.parametrize("skill", SKILLS.values(), ids=SKILLS)
def test_the_examples_in_the_request_schemas_are_read(served: Contract, skill: Skill) -> None:
    examples = json.loads(served.schemas.text(skill.request_schema)).get("examples", [])
    for example in examples:
        assert isinstance(served.read(example), Request)


@both
@pytest.mark.parametrize(
    "payload",
    [None, 5, "lead.submit.request", [], {}, {"type": None}, {"type": 5}, {"type": []}, {"type": "lead.submit"},
     {"type": ".request"}, {"type": "request"}, {"type": "lead.submit.response"}, {"type": "lead.submit.request "}],
)  # fmt: skip
def test_no_other_payload_names_a_skill(served: Contract, payload: Any) -> None:
    assert served.skill_of(payload) is None


@both
@pytest.mark.parametrize(
    ("payload", "location", "keyword"),
    [
        (5, "", "type"),
        (None, "", "type"),
        ([], "", "type"),
        ({}, "", "required"),
        ({"type": 5}, "/type", "type"),
        ({"type": None}, "/type", "type"),
    ],
)
def test_a_payload_without_a_type_breaks_the_schema(
    served: Contract, payload: Any, location: str, keyword: str
) -> None:
    error = refusal(served, payload)
    assert error.code == "SCHEMA_VALIDATION_FAILED"
    assert [(problem.location, problem.keyword) for problem in error.problems] == [(location, keyword)]


@both
@pytest.mark.parametrize("name", ["vehicle.paint.request", "lead.submit.response", "", MARK])
def test_a_type_that_names_no_skill_is_an_unsupported_skill_and_the_types_are_listed(
    served: Contract, name: str
) -> None:
    error = refusal(served, {"type": name, "whatever": 1})
    assert error.code == "UNSUPPORTED_SKILL"
    assert all(skill.request_type in str(error.hint) for skill in SKILLS.values())
    assert MARK not in json.dumps(served.write_error(error), ensure_ascii=False)


@both
def test_identifiers_of_a_vehicle_are_read_as_they_came(served: Contract) -> None:
    read: Any = served.read(request("inventory.vehicle", stock="T-1", vehicle_id="v 1"))
    assert (read.vehicle.vin, read.vehicle.stock, read.vehicle.vehicle_id) == ("1HGCY2F57RA000001", "T-1", "v 1")


@both
def test_a_lead_keeps_every_part_verbatim_and_its_envelope_apart(served: Contract) -> None:
    sent = lead(idempotency_key="key-1")
    read: Any = served.read(copy.deepcopy(sent))
    assert read.idempotency_key == "key-1"
    assert read.business == {key: value for key, value in sent.items() if key not in ("type", "idempotency_key")}
    assert read.consent == sent["consent"]
    assert read.part("trade_in") == sent["trade_in"]


@both
@pytest.mark.requirement("RPC-LEAD-ANY-COMBINATION")
@pytest.mark.parametrize("without", range(8))
def test_a_lead_has_any_combination_of_vehicle_trade_in_and_appointment(served: Contract, without: int) -> None:
    parts = ("vehicle_of_interest", "trade_in", "appointment")
    absent = [part for place, part in enumerate(parts) if without & 1 << place]
    read: Any = served.read(lead(**dict.fromkeys(absent)))
    assert [part for part in parts if read.part(part) is None] == absent


# Consent and condition words: their codes only when nothing else is wrong (CONTRACTS.md section 4)


@both
def test_a_lead_that_lacks_only_its_grant_asks_for_it(served: Contract) -> None:
    error = refusal(served, lead(consent=None))
    assert error.code == "CONTACT_CONSENT_REQUIRED"
    assert [(problem.location, problem.keyword) for problem in error.problems] == [("", "required")]


@both
@pytest.mark.parametrize(
    "grant",
    [None, "yes", [], {}, {"granted_at": "today"}, {**request("lead.submit")["consent"], "scope": ["marketing"]},
     {**request("lead.submit")["consent"], "granted_at": "2026-04-30T10:16:00"},
     {**request("lead.submit")["consent"], "extra": 1},
     {**request("lead.submit")["consent"], "allowed_channels": []}],
)  # fmt: skip
def test_a_lead_in_which_only_the_grant_is_broken_has_an_invalid_consent(served: Contract, grant: Any) -> None:
    payload = {**lead(consent=None), "consent": grant}
    error = refusal(served, payload)
    assert error.code == "INVALID_CONSENT"
    assert error.problems
    assert all(problem.location.startswith("/consent") for problem in error.problems)
    assert error.hint


CONDITIONS = [
    ("good", "good", ["/vehicle_of_interest/condition"]),
    ("poor", "good", ["/vehicle_of_interest/condition"]),
    ("cpo", "used", ["/trade_in/condition"]),
    ("cpo", "new", ["/trade_in/condition"]),
    ("fair", "cpo", ["/trade_in/condition", "/vehicle_of_interest/condition"]),
]


@both
@pytest.mark.parametrize(("wanted", "traded", "places"), CONDITIONS)
def test_only_swapped_condition_words_are_an_invalid_condition(
    served: Contract, wanted: str, traded: str, places: list[str]
) -> None:
    payload = lead()
    payload["vehicle_of_interest"]["condition"] = wanted
    payload["trade_in"]["condition"] = traded
    error = refusal(served, payload)
    assert error.code == "INVALID_CONDITION"
    assert [problem.location for problem in error.problems] == places
    assert error.hint == CODES["INVALID_CONDITION"].hint


@both
@pytest.mark.parametrize("word", ["broken", "", 5, None, ["good"], {"word": "good"}, "Good"])
def test_a_condition_that_fits_nowhere_breaks_the_schema(served: Contract, word: Any) -> None:
    payload = lead()
    payload["vehicle_of_interest"]["condition"] = word
    error = refusal(served, payload)
    assert error.code == "SCHEMA_VALIDATION_FAILED"
    assert {problem.location for problem in error.problems} == {"/vehicle_of_interest/condition"}


@both
def test_mixtures_break_the_schema_and_everything_is_listed_at_once(served: Contract) -> None:
    swapped = lead(consent=None)
    swapped["trade_in"]["condition"] = "used"
    broken = lead(consent={"scope": ["lead_submission"]}, nickname="Annie")
    broken["customer"]["email"] = "nobody"
    for payload, places in (
        (swapped, {"", "/trade_in/condition"}),
        (broken, {"/consent", "/customer/email", "/nickname"}),
        ({**lead(consent=None), "submitted_at": "now"}, {"", "/submitted_at"}),
    ):
        error = refusal(served, payload)
        assert error.code == "SCHEMA_VALIDATION_FAILED"
        assert {problem.location for problem in error.problems} == places


@both
def test_a_condition_is_only_special_in_a_lead(served: Contract) -> None:
    error = refusal(served, request("inventory.search", filters={"condition": ["good"]}))
    assert error.code == "SCHEMA_VALIDATION_FAILED"


@both
def test_the_schema_wins_over_what_is_not_offered(served: Contract) -> None:
    narrow = contract(served.version, filters=("make",), sort_fields=("price",))
    error = refusal(narrow, request("inventory.search", filters={"model": ["Civic"], "year_min": "twenty"}))
    assert error.code == "SCHEMA_VALIDATION_FAILED"
    assert [problem.keyword for problem in error.problems] == ["type"]


# Capabilities


@both
@pytest.mark.parametrize("skill", ["inventory.search", "inventory.facets"])
def test_filters_that_are_switched_off_are_refused_one_by_one(served: Contract, skill: str) -> None:
    narrow = contract(served.version, filters=("make",), free_text=False)
    error = refusal(narrow, {"type": f"{skill}.request", "filters": {"make": ["A"], "model": ["B"], "query": "red"}})
    assert error.code == "UNSUPPORTED_FILTER"
    assert [(problem.location, problem.keyword) for problem in error.problems] == [
        ("/filters/model", "capability"),
        ("/filters/query", "capability"),
    ]


@both
def test_filters_are_refused_before_the_sort_field_and_both_are_listed(served: Contract) -> None:
    narrow = contract(served.version, filters=("make",), sort_fields=("price",))
    sort = {"field": "year", "order": "asc"}
    error = refusal(narrow, request("inventory.search", filters={"model": ["B"]}, sort=sort))
    assert error.code == "UNSUPPORTED_FILTER"
    assert [problem.location for problem in error.problems] == ["/filters/model", "/sort/field"]
    error = refusal(narrow, request("inventory.search", filters={"make": ["B"]}, sort=sort))
    assert error.code == "UNSUPPORTED_SORT"
    assert error.hint == "Sort by price."


@both
def test_free_text_is_a_capability_of_its_own(served: Contract) -> None:
    read: Any = contract(served.version, filters=()).read(
        {"type": "inventory.search.request", "filters": {"query": "red"}}
    )
    assert read.filters.text == "red"


# Writing

RECEIPTS: list[dict[str, Any]] = [
    {"data": {"lead_id": "lead_1", "status": "received", "dealer": {"name": "Demo Toyota"}}, "message": "Received."},
    {"data": {"lead_id": "lead_1", "status": "duplicate"}},
    {
        "data": {
            "lead_id": "lead_1",
            "status": "received",
            "appointment": {"appointment_id": "a", "status": "confirmed", "confirmed_at": "2026-05-03T18:00:00Z"},
            "dealer": {"name": "Demo Toyota", "phone": "+14155550100"},
        },
        "message": "Confirmed \N{EM DASH} see you.",
    },
    {
        "data": {
            "lead_id": "lead_1",
            "status": "received",
            "appointment": {
                "appointment_id": "a",
                "status": "proposed",
                "proposed_times": ["2026-05-03T11:00:00-07:00"],
            },
        },
        "message": "Other times.",
    },
]


@both
@pytest.mark.requirement("RPC-EX-LEAD-RESPONSE")
@pytest.mark.parametrize("receipt", RECEIPTS)
def test_a_receipt_is_written_byte_for_byte_behind_its_type(served: Contract, receipt: dict[str, Any]) -> None:
    text = json.dumps(receipt, ensure_ascii=False).encode()
    assert written(served, "lead.submit", LeadReply(text)) == {"type": "lead.submit.response", **receipt}
    assert served.write(LeadReply(text)).endswith(text[1:])


@both
@pytest.mark.requirement("RPC-EX-VEHICLE-RESPONSE")
def test_a_listing_is_written_as_it_is_under_data(served: Contract) -> None:
    found = written(served, "inventory.vehicle", VehicleReply(BODY))
    assert found == {"type": "inventory.vehicle.response", "data": LISTING}
    assert BODY in served.write(VehicleReply(BODY))


@both
@pytest.mark.requirement("RPC-EX-SEARCH-WHOLE-NUMBERS")
@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_page_holds_its_listings_in_order(served: Contract, count: int) -> None:
    found = written(served, "inventory.search", SearchReply(17, 0, 20, [BODY] * count))
    assert found["type"] == "inventory.search.response"
    assert found["data"]["total"] == 17
    assert found["data"]["limit"] == 20
    assert found["data"]["vehicles"] == [LISTING] * count
    assert all(type(vehicle["price"]) is int for vehicle in found["data"]["vehicles"])


@both
@pytest.mark.requirement("RPC-EX-INFORMATION-RESPONSE")
def test_the_profile_is_written_with_what_the_contract_knows_of(served: Contract) -> None:
    stored = {**profile(), "dealer_id": "demo-auto-group", "secret": 1}
    stored["rooftops"][0]["internal"] = True
    reply = DealerInformationReply(stored, served.offer.capabilities)
    data = written(served, "dealer.information", reply)["data"]
    assert data["name"] == "Demo Auto Group"
    first = data["rooftops"][0]
    assert {"name", "geo", "emails", "phones", "address", "timezone", "capabilities"} <= first.keys()
    assert first["phones"][0] == {"name": "Sales", "value": "+14155550100"}
    assert "secret" not in data
    assert "internal" not in first


@both
def test_empty_facets_are_an_empty_object(served: Contract) -> None:
    assert written(served, "inventory.facets", FacetsReply(Facets({"make": ()})))["data"] == {}


# Errors


@both
@pytest.mark.parametrize("code", CODES)
def test_the_error_object_of_every_code_fits_the_schema_of_its_contract(served: Contract, code: str) -> None:
    problems = [
        Problem("/a~1b/0", "type", "must be an integer", "Send a number."),
        Problem("", "required", "needs `x`"),
    ]
    for error in (
        AAPError(code),
        AAPError(code, problems=problems),
        AAPError(code, "Said so.", hint="Do so.", retry_after_ms=1, details={"proposed_times": []}, reason="channel"),
    ):
        payload = served.write_error(error)
        assert served.schemas.problems("error.schema.json", payload) == []
        assert CODES[payload["code"]].in_contract(served.version)
        assert payload["error_id"] == error.error_id
        assert "channel" not in json.dumps(payload)


# The card


@both
def test_the_extension_names_the_version_and_every_skills_schemas(served: Contract) -> None:
    params = served.extension_params()
    assert params["version"] == f"{served.version}.0"
    assert served.extension_uri == f"https://autoagentprotocol.org/extensions/aap/v{served.version}"
    assert params["skills"].keys() == SKILLS.keys()
    for skill, schemas in params["skills"].items():
        for kind, file in (("request", SKILLS[skill].request_schema), ("response", SKILLS[skill].response_schema)):
            assert schemas[f"{kind}_schema"] == json.loads(served.schemas.text(file))["$id"]


# Anything at all

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=6).map(MARK.__add__)
    | st.sampled_from([MARK, 10**30, -1, 2020.0, 1e300]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from([MARK, "x", "type"]), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@st.composite
def payloads(draw: st.DrawFn) -> Any:
    """A good request in which some places hold anything instead, or anything alone."""
    payload = request(draw(st.sampled_from(list(SKILLS))))
    for _ in range(draw(st.integers(0, 4))):
        place: Any = payload
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            key = draw(st.sampled_from([*keys, "features_all", "filters", "dealer_id"]) if isinstance(place, dict)
                       else st.sampled_from(keys)) if keys else None  # fmt: skip
            if key is None or key == "type":
                break
            inner = place[key] if not isinstance(place, dict) else place.get(key)
            if isinstance(inner, dict | list) and inner and draw(st.booleans()):
                place = inner
                continue
            place[key] = draw(VALUES)
            break
    return payload


@settings(deadline=None, max_examples=250)
@given(version=st.sampled_from(VERSIONS), payload=payloads() | VALUES)
def test_any_value_is_read_or_refused_and_nothing_of_it_is_repeated(version: str, payload: Any) -> None:
    served = CONTRACTS[version]
    before = copy.deepcopy(payload)
    outcome: Request | AAPError
    try:
        outcome = served.read(payload)
    except AAPError as error:
        outcome = error
    assert payload == before
    if isinstance(outcome, AAPError):
        told = served.write_error(outcome)
        assert served.schemas.problems("error.schema.json", told) == []
        assert told["details"]["errors"]
        assert MARK not in json.dumps(told, ensure_ascii=False)
    else:
        assert isinstance(outcome, Request)
