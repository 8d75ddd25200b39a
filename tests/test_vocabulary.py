"""Feature codes in free texts. What counts as stated is ours (CONTRACTS.md, section 5, "Feature filters")."""

import tomllib
from importlib import resources
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecourt.vocabulary import Vocabulary, VocabularyError

FILE = resources.files("forecourt").joinpath("vocabulary.toml")
DOCUMENT = tomllib.loads(FILE.read_text(encoding="utf-8"))
ALIASES = [(code, alias) for code, entry in DOCUMENT.items() for alias in entry["aliases"]]


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return Vocabulary.packaged()


def test_every_alias_states_its_own_code_and_what_the_file_adds(vocabulary: Vocabulary) -> None:
    for code, alias in ALIASES:
        entry = DOCUMENT[code]
        stated = {code, *entry.get("implies", []), *entry.get("also", {}).get(alias, [])}
        for text in (alias, alias.upper(), f"  {alias.title()}! "):
            assert vocabulary.recognise([text]) == tuple(sorted(stated)), text


def test_the_packaged_file_repeats_no_alias() -> None:
    assert len({alias.casefold() for _, alias in ALIASES}) == len(ALIASES)


def test_codes_are_in_order_and_each_has_a_label(vocabulary: Vocabulary) -> None:
    assert list(vocabulary.codes) == sorted(DOCUMENT)
    assert len(vocabulary.codes) >= 80
    assert vocabulary.label("apple_carplay") == "Apple CarPlay"
    assert "apple_carplay" in vocabulary
    assert "flying" not in vocabulary
    with pytest.raises(KeyError):
        vocabulary.label("flying")


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("Adaptive Cruise Control", "adaptive_cruise_control"),
        ("ADAPTIVE CRUISE CONTROL W/STOP & GO", "adaptive_cruise_control"),
        ("Apple CarPlay\N{REGISTERED SIGN}", "apple_carplay"),
        ("Apple CarPlay and Android Auto", "android_auto apple_carplay"),
        ("Apple CarPlay/Android Auto", "android_auto apple_carplay"),
        ("Wireless Apple CarPlay & Android Auto\N{TRADE MARK SIGN}", "android_auto apple_carplay"),
        ("AppleCarPlay", ""),
        ("Honda Sensing (collision mitigation, lane keep, adaptive cruise)",
         "adaptive_cruise_control automatic_emergency_braking lane_keep_assist"),
        ("Leather-trimmed seats", "leather_seats"),
        ("Power moonroof", "sunroof"),
        ("9-inch touchscreen infotainment", "touchscreen"),
        ("Wireless phone charger", "wireless_charging"),
        ("Hands-free power tailgate", "power_liftgate"),
        ("Blind spot monitoring", "blind_spot_monitoring"),
        ("BLIND-SPOT MONITOR w/ REAR CROSS-TRAFFIC ALERT", "blind_spot_monitoring rear_cross_traffic_alert"),
        ("Heated & Ventilated Front Seats", "heated_front_seats ventilated_front_seats"),
        ("Heated/Cooled Seats", "heated_front_seats ventilated_front_seats"),
        ("Heated Front Bucket Seats", "heated_front_seats"),
        ("Rear Heated Seats", "heated_rear_seats"),
        ("Heated Front and Rear Seats", "heated_front_seats heated_rear_seats"),
        ("Front and Rear Parking Sensors", "front_parking_sensors rear_parking_sensors"),
        ("360\N{DEGREE SIGN} Camera", "backup_camera surround_view_camera"),
        ("360\N{DEGREE SIGN} surround-view", "surround_view_camera backup_camera"),
        ("Bird\N{RIGHT SINGLE QUOTATION MARK}s Eye View Camera", "backup_camera surround_view_camera"),
        ("Power Tilt/Slide Moonroof", "sunroof"),
        ("CommandView Dual-Pane Panoramic Sunroof", "panoramic_roof"),
        ("60/40 Split Fold Rear Seat", "split_folding_rear_seat"),
        ("Captain's Chairs (2nd Row)", "captains_chairs"),
        ("3rd row seats: split-bench", "third_row_seats"),
        ("SiriusXM\N{REGISTERED SIGN} Satellite Radio", "satellite_radio"),
        ("4G LTE Wi-Fi Hotspot", "wifi_hotspot"),
        ("10-Way Power Driver Seat; Memory Seats", "memory_seats power_driver_seat"),
        ("Driver's Seat Memory", "memory_seats"),
        ("Trailer Tow Package w/ Trailer Brake Controller", "tow_package trailer_brake_controller"),
        ("Class IV Hitch", "tow_package"),
        ("Spray-in Bedliner", "bed_liner"),
        ("Electronic Locking Rear Differential", "locking_differential"),
        ("Bose\N{REGISTERED SIGN} 12-speaker system", "premium_audio"),
        ("Head-Up Display (HUD)", "heads_up_display"),
        ("GPS Navigation", "navigation"),
        ("Qi-compatible wireless charging", "wireless_charging"),
        ("Vehicle-to-Load (V2L) adapter", "vehicle_to_load"),
        ("i-Pedal one-pedal driving", "one_pedal_driving"),
        ("Mega Power Frunk", "front_trunk"),
        ("ABS brakes", "abs"),
        ("Up/Down Quickshifter", "quick_shifter"),
        ("Heated grips + hard saddlebags", "heated_grips panniers"),
        ("Toit ouvrant", ""),
        ("N\N{LATIN SMALL LETTER A WITH GRAVE}ppa Leather", "leather_seats"),
        ("H\N{LATIN CAPITAL LETTER E WITH ACUTE}AT PUMP", "heat_pump"),
        ("Remote Engine Start", "remote_start"),
        ("Proximity Key For Doors And Push Button Start", "keyless_entry push_button_start"),
        ("LED Headlights\N{BULLET}Fog Lamps\N{BULLET}Roof Rails", "fog_lights led_headlights roof_rails"),
    ],
)  # fmt: skip
def test_texts_of_real_listings(vocabulary: Vocabulary, text: str, codes: str) -> None:
    assert vocabulary.recognise([text]) == tuple(sorted(codes.split()))


@pytest.mark.parametrize(
    "text",
    [
        "No sunroof",
        "no power sunroof",
        "w/o navigation",
        "W/O Navigation or Sunroof",
        "Without heated seats",
        "sunroof delete",
        "Navigation not included",
        "not equipped with Apple CarPlay",
        "Sunroof: No",
        "Navigation - N/A",
        "Heated seats: none",
        "Less Remote Start",
        "No sunroof/navigation",
        "Remote start ready",
    ],
)
def test_what_a_text_denies_is_not_found(vocabulary: Vocabulary, text: str) -> None:
    assert vocabulary.recognise([text]) == ()


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("No accidents, Apple CarPlay", ("apple_carplay",)),
        ("no sunroof, heated seats", ("heated_front_seats",)),
        ("Sunroof delete; Navigation", ("navigation",)),
        ("Clean history (no damage) Remote Start", ("remote_start",)),
        ("w/ sunroof", ("sunroof",)),
    ],
)
def test_a_denial_reaches_no_further_than_its_phrase(vocabulary: Vocabulary, text: str, codes: tuple[str, ...]) -> None:
    assert vocabulary.recognise([text]) == codes


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "...",
        "Sunroofless",
        "Unheated seats",
        "Seats, heated",
        "Leatherman multi-tool",
        "Cruise control",
        "Absolute bargain",
        "Remote, start",
        "Cargo net",
        "Gym bag",
        "Leather-wrapped shift knob",
        "GPS theft tracker",
        "Digital DAC audio",
    ],
)
def test_words_count_only_whole_and_side_by_side(vocabulary: Vocabulary, text: str) -> None:
    assert vocabulary.recognise([text]) == ()


def test_codes_of_many_texts_come_sorted_and_once(vocabulary: Vocabulary) -> None:
    texts = ["Sunroof", "Moonroof", "Apple CarPlay", "One Owner"]
    assert vocabulary.recognise(texts) == ("apple_carplay", "sunroof")


@given(st.text(max_size=300))
def test_any_text_is_read_the_same_way_twice(text: str) -> None:
    vocabulary = Vocabulary.packaged()
    codes = vocabulary.recognise([text])
    assert codes == vocabulary.recognise([text])
    assert set(codes) <= set(vocabulary.codes)


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forecourt.vocabulary._REMEMBERED_TEXTS", 3)
    vocabulary = Vocabulary.load()
    for number in range(10):
        assert vocabulary.recognise([f"sunroof {number}"]) == ("sunroof",)
    vocabulary.recognise(["sunroof " + "x" * 5000])
    assert len(vocabulary._remembered) <= 3
    assert max(map(len, vocabulary._remembered)) < 100


@pytest.mark.parametrize(
    ("code", "closest"),
    [
        ("adaptive_cruise", "adaptive_cruise_control"),
        ("carplay", "apple_carplay"),
        ("moonroof", "sunroof"),
        ("apple_car_play", "apple_carplay"),
        ("heated_front_seat", "heated_front_seats"),
        ("blind_spot_monitorin", "blind_spot_monitoring"),
        ("Apple_CarPlay", "apple_carplay"),
        ("flux_capacitor", None),
        ("", None),
        ("sunroof" * 50, None),
    ],
)
def test_the_closest_code_to_a_mistaken_one(vocabulary: Vocabulary, code: str, closest: str | None) -> None:
    assert vocabulary.closest(code) == closest


def test_the_packaged_vocabulary_is_read_once() -> None:
    assert Vocabulary.packaged() is Vocabulary.packaged()


def test_an_operators_file_adds_codes_and_aliases(tmp_path: Path) -> None:
    file = tmp_path / "ours.toml"
    file.write_text(
        '[sunroof]\naliases = ["toit ouvrant"]\n'
        '[apple_carplay]\nlabel = "CarPlay"\n'
        '[snow_plow]\nlabel = "Snow plow"\naliases = ["snow plow", "plow prep"]\nimplies = ["tow_package"]\n',
        encoding="utf-8",
    )
    vocabulary = Vocabulary.load([file])
    assert vocabulary.recognise(["Toit ouvrant"]) == ("sunroof",)
    assert vocabulary.recognise(["Moonroof"]) == ("sunroof",)
    assert vocabulary.recognise(["Snow-Plow"]) == ("snow_plow", "tow_package")
    assert vocabulary.label("apple_carplay") == "CarPlay"
    assert vocabulary.label("snow_plow") == "Snow plow"
    assert "snow_plow" not in Vocabulary.packaged()


def test_every_problem_of_every_file_is_listed_with_its_place(tmp_path: Path) -> None:
    first = tmp_path / "first.toml"
    first.write_text(
        '[Bad-Code]\nlabel = "x"\naliases = ["y"]\n'
        '[no_label]\naliases = ["some words"]\n'
        '[no_aliases]\nlabel = "None"\n'
        '[taken]\nlabel = "Taken"\naliases = ["Moon-Roof", "a, b", "..."]\n'
        '[odd]\nlabel = "Odd"\naliases = "text"\ncolour = 1\nimplies = ["nowhere"]\n'
        'also = {"zzz" = ["sunroof"]}\n',
        encoding="utf-8",
    )
    second = tmp_path / "second.toml"
    second.write_text("not toml", encoding="utf-8")
    third = tmp_path / "third.toml"
    third.write_bytes(b"\xff\xfe")
    fourth = tmp_path / "fourth.toml"
    fourth.write_text("top = 1\n[sunroof]\nalso = 3\n", encoding="utf-8")
    with pytest.raises(VocabularyError) as caught:
        Vocabulary.load([first, second, third, fourth, tmp_path / "absent.toml"])
    problems = [problem.replace(str(tmp_path), "") for problem in caught.value.problems]
    assert [problem for problem in problems if "is not TOML" not in problem] == [
        "/first.toml: Bad-Code: a code is snake_case of at most 64 characters",
        "/first.toml: no_label.label: must be a text that is not blank",
        "/first.toml: no_aliases.aliases: a new code needs at least one alias",
        "/first.toml: taken.aliases: 'Moon-Roof' already belongs to sunroof",
        "/first.toml: taken.aliases: 'a, b' must be words without commas or brackets",
        "/first.toml: taken.aliases: '...' must be words without commas or brackets",
        "/first.toml: odd.colour: unknown key",
        "/first.toml: odd.aliases: must be an array of texts",
        "/first.toml: odd.also: 'zzz' is not an alias of odd",
        "/third.toml: is not UTF-8",
        "/fourth.toml: top: must be a table with label and aliases",
        "/fourth.toml: sunroof.also: must be a table of alias to codes",
        "/absent.toml: cannot be read",
        "/first.toml: odd.implies: 'nowhere' is not a code",
    ]
    assert sum(problem.startswith("/second.toml: is not TOML") for problem in problems) == 1
    assert str(caught.value).splitlines() == list(caught.value.problems)
    assert isinstance(caught.value, ValueError)
