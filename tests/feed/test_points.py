"""The fifteen points of FEEDS.md, "What real files do, and what is right", each on a small file of its own."""

import gzip
import json

import pytest
from tests.feed.reading import one, read

from forecourt.feed import Fee, FeedError

HEADER = "vin,stock,type,year,make,model,miles,price"
CIVIC = "2HGFE1F78NH000001,S1,Used,2022,Honda,Civic,28450,24990"
ACCORD = "1HGCV1F33LA000001,S2,Used,2020,Honda,Accord,41000,21990"


# 1. Quotes, line ends, byte order marks, encodings, delimiters.


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252"])
def test_point_1_every_delimiter_line_end_and_encoding_is_read(delimiter: str, newline: str, encoding: str) -> None:
    text = newline.join([HEADER + ",exteriorcolor", CIVIC + ",Gris métallisé", ACCORD + ",Bleu", ""]).replace(
        ",", delimiter
    )
    reading = read(text.encode(encoding))
    assert [vehicle["model"] for vehicle in reading.vehicles] == ["Civic", "Accord"]
    assert reading.vehicles[0]["exterior_color"] == "Gris métallisé"
    assert reading.findings() == []


def test_point_1_the_euro_and_the_oe_of_iso_8859_15_are_told_from_windows_1252() -> None:
    text = f"{HEADER},exteriorcolor,description\n{CIVIC},Rouge cœur,Škoda parts for 20 €\n"
    vehicle = read(text.encode("iso-8859-15")).only
    assert (vehicle["exterior_color"], vehicle["description"]) == ("Rouge cœur", "Škoda parts for 20 €")


def test_point_1_signs_of_windows_1252_stay_what_they_are() -> None:
    text = f"{HEADER},description\n{CIVIC},“½ ton” driver\xb4s choice 100 €\n"
    assert read(text.encode("cp1252")).only["description"] == "“½ ton” driver\xb4s choice 100 €"


def test_point_1_a_stray_byte_in_a_utf_8_file_is_read_and_said() -> None:
    data = f"{HEADER},exteriorcolor\n{CIVIC},Gris métallisé naïf\n".encode() + ACCORD.encode() + b",caf\xe9\n"
    reading = read(data)
    assert [vehicle["exterior_color"] for vehicle in reading.vehicles] == ["Gris métallisé naïf", "café"]
    assert len(reading.report.warnings) == 1


def test_point_1_a_line_break_in_quotes_belongs_to_its_cell_and_lines_are_counted_as_they_stand() -> None:
    reading = read(f'{HEADER},description\n{CIVIC},"One\nTwo, ""three"""\n{ACCORD}\n')
    assert reading.vehicles[0]["description"] == 'One\nTwo, "three"'
    assert reading.findings() == [("refused", 4, "")]


# 2. Prices.


@pytest.mark.parametrize("text", ["", "0", "$0.00", "Call", "N/A", "Contact us", "0.00 USD", "#N/A"])
def test_point_2_what_is_no_price_is_absent_and_nothing_to_report(text: str) -> None:
    reading = one(price=text)
    assert not {"price", "list_price"} & reading.only.keys()
    assert reading.findings() == []


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("$42,875.00", 42875),
        ("10,499.00 USD", 10499),
        ("64460.0", 64460),
        ("USD 9 999", 9999),
        ("42.875,00", 42875),
        ("12500", 12500),
    ],
)
def test_point_2_money_is_read_as_it_is_written(text: str, amount: int) -> None:
    reading = one(price=text)
    assert (reading.only["price"], reading.only["list_price"]) == (amount, amount)
    assert reading.findings() == []


@pytest.mark.parametrize(("text", "amount"), [("24990.50", 24991), ("24990.49", 24990), ("$1,999.99", 2000)])
def test_point_2_cents_are_rounded_half_up_and_reported(text: str, amount: int) -> None:
    reading = one(price=text)
    assert reading.only["price"] == amount
    assert reading.findings() == [("repaired", 2, "price")]


@pytest.mark.parametrize("text", ["10,499.00 CAD", "€ 10499", "EUR 10.499,00"])
def test_point_2_another_currency_than_the_feeds_refuses_the_row_alone(text: str) -> None:
    reading = read(f'{HEADER}\n{CIVIC}\nX,S9,Used,2020,Honda,Fit,1,"{text}"\n')
    assert [vehicle["stock"] for vehicle in reading.vehicles] == ["S1"]
    assert reading.findings() == [("refused", 3, "price")]


@pytest.mark.parametrize("text", ["Call 555-0100", "10000-12000", "-500", "24990 + fees"])
def test_point_2_what_only_looks_like_a_price_is_left_out_and_reported(text: str) -> None:
    reading = one(price=text)
    assert "price" not in reading.only
    assert reading.findings() == [("repaired", 2, "price")]


def test_point_2_price_is_what_the_buyer_pays_with_the_rooftops_mandatory_fees() -> None:
    vehicle = one({"fees": {"Main": [Fee("Documentation", 799), Fee("Preparation", 500)]}}, price="24990").only
    assert (vehicle["list_price"], vehicle["price"]) == (24990, 26289)
    assert vehicle["fees"] == [{"name": "Documentation", "amount": 799}, {"name": "Preparation", "amount": 500}]


def test_point_2_fees_that_nobody_configured_are_unknown_and_an_empty_list_says_there_are_none() -> None:
    assert "fees" not in one(price="24990").only
    assert one({"fees": {"Main": []}}, price="24990").only["fees"] == []


def test_point_2_a_price_with_fees_in_it_is_taken_as_it_is() -> None:
    vehicle = one({"fees": {"Main": [Fee("Documentation", 799)]}}, price="24990", vehicle_all_in_price="25500").only
    assert (vehicle["list_price"], vehicle["price"]) == (24990, 25500)


def test_point_2_the_most_specific_offer_is_paid_and_the_price_before_it_is_the_list_price() -> None:
    assert one(sellingprice="22000", internet_price="21500").only["price"] == 21500
    vehicle = one(price="22000", sale_price="21000").only
    assert (vehicle["list_price"], vehicle["price"]) == (22000, 21000)


def test_point_2_what_the_dealer_paid_is_never_shown() -> None:
    reading = one({"keep_unmapped": True}, price="24990", invoice="18000", bookvalue="17000")
    assert "18000" not in json.dumps(reading.only)
    assert "17000" not in json.dumps(reading.only)
    assert reading.report.ignored_columns == ["invoice", "bookvalue"]


# 3. Odometers.


@pytest.mark.parametrize("text", ["2,777 miles", "2777", "2777.0", "2 777 mi"])
def test_point_3_miles_are_read(text: str) -> None:
    reading = one(miles=text)
    assert reading.only["mileage"] == 2777
    assert reading.findings() == []


def test_point_3_kilometers_are_converted_and_reported() -> None:
    for reading in (
        one(mileage="50000 km"),
        one(mileage="50000", odometerunit="KM"),
        one({"odometer_unit": "km"}, mileage="50000"),
    ):
        assert reading.only["mileage"] == 31069  # 50000 / 1.609344 = 31068.56
        assert reading.findings() == [("repaired", 2, "mileage")]


@pytest.mark.parametrize("text", ["", "N/A", "-", "null"])
def test_point_3_a_missing_odometer_is_absent_never_0(text: str) -> None:
    reading = one(miles=text)
    assert "mileage" not in reading.only
    assert reading.findings() == []


def test_point_3_0_miles_are_believed_of_a_new_vehicle_only() -> None:
    assert one(miles="0", type="New").only["mileage"] == 0
    used = one(miles="0")
    assert "mileage" not in used.only
    assert used.findings() == [("repaired", 2, "mileage")]


# 4. Nothing, and nothing invented.


@pytest.mark.parametrize("text", ["#N/A", "nan", "null", "-", "NULL", "NaN"])
def test_point_4_placeholders_are_nothing(text: str) -> None:
    reading = one(
        year=text, trim=text, exteriorcolor=text, options=text, dateinstock=text, vin=text, citympg=text, imagelist=text
    )
    kept = {"dealer_id", "vehicle_id", "stock", "rooftop", "make", "model", "condition", "status", "updated_at"}
    assert reading.only.keys() == kept
    assert reading.findings() == []


def test_point_4_a_year_that_is_none_is_absent_and_reported() -> None:
    for text in ("20222", "1066", "soon", "2060"):
        reading = one(year=text)
        assert "year" not in reading.only
        assert reading.findings() == [("repaired", 2, "year")]


# 5. New, used, certified, and not for retail.


@pytest.mark.parametrize(
    ("cells", "condition", "reported"),
    [
        ({"type": "N"}, "new", False),
        ({"type": "U"}, "used", False),
        ({"type": "CPO"}, "cpo", False),
        ({"type": "Used", "certified": "Y"}, "cpo", False),
        ({"type": "Used", "certified": "0"}, "used", False),
        ({"type": "New", "certified": "True"}, "new", True),
        ({"type": "CPO", "certified": "No"}, "used", True),
        ({"type": "", "isnew": "Y"}, "new", False),
        ({"type": "Used", "isnew": "Y"}, "used", True),
        ({"type": "Excellent"}, "used", True),
        ({"type": ""}, "used", True),
    ],
)
def test_point_5_condition_is_what_the_columns_say_together(
    cells: dict[str, str], condition: str, reported: bool
) -> None:
    reading = one(**cells)
    assert reading.only["condition"] == condition
    assert reading.findings() == ([("repaired", 2, "condition")] if reported else [])


@pytest.mark.parametrize("code", ["W", "F", "Wholesale", "fleet"])
def test_point_5_wholesale_and_fleet_are_left_out(code: str) -> None:
    reading = read(f"{HEADER},disposition\n{CIVIC},R\n{ACCORD},{code}\n")
    assert reading.only["stock"] == "S1"
    assert reading.findings() == [("left_out", 3, "disposition")]


# 6. Photos.


def test_point_6_photos_are_split_only_before_an_address() -> None:
    first, second = "https://x.example.com/a,b.jpg?c=1;d=2", "http://x.example.com/2.jpg"
    for separator in ("|", ",", "; ", " ", ", "):
        assert one(imagelist=first + separator + second).only["photos"] == [first, second]


def test_point_6_what_is_no_http_address_is_dropped_and_reported() -> None:
    reading = one(imagelist="//x.example.com/0.jpg|https://x.example.com/1.jpg|ftp://x.example.com/2.jpg|photo.jpg")
    assert reading.only["photos"] == ["https://x.example.com/1.jpg"]
    assert reading.findings() == [("repaired", 2, "photos")]


def test_point_6_spaces_and_letters_in_an_address_are_encoded() -> None:
    assert one(imagelist="https://x.example.com/é 1.jpg").only["photos"] == ["https://x.example.com/%C3%A9%201.jpg"]


# 7. Dates.


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2026-07-30", "2026-07-30"),
        ("7/30/2026", "2026-07-30"),
        ("7/30/2026 1:59:46 PM", "2026-07-30"),
        ("07/30/26", "2026-07-30"),
        ("45601", "2024-11-05"),
        ("45601.58", "2024-11-05"),
        ("20260730", "2026-07-30"),
        ("30.07.2026", "2026-07-30"),
        ("Jul 30, 2026", "2026-07-30"),
    ],
)
def test_point_7_days_are_read_in_every_form(text: str, day: str) -> None:
    reading = one(dateinstock=text)
    assert reading.only["inventory_date"] == day
    assert reading.findings() == []


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("7/30/2026 1:59:46 PM", "2026-07-30T13:59:46Z"),
        ("7/30/2026 12:05 AM", "2026-07-30T00:05:00Z"),
        ("2026-07-30T09:00:00-04:00", "2026-07-30T13:00:00Z"),
        ("2026-07-30 09:00:00", "2026-07-30T09:00:00Z"),
        ("45601.5", "2024-11-05T12:00:00Z"),
    ],
)
def test_point_7_moments_come_out_in_utc(text: str, moment: str) -> None:
    assert one(lastupdated=text).only["updated_at"] == moment


def test_point_7_what_is_no_date_is_left_out_and_reported() -> None:
    for text in ("next week", "2/31/2026", "99999", "13/13/2026"):
        reading = one(dateinstock=text)
        assert "inventory_date" not in reading.only
        assert reading.findings() == [("repaired", 2, "inventory_date")]


def test_point_7_without_an_update_of_its_own_a_vehicle_keeps_the_one_that_is_known() -> None:
    assert one().only["updated_at"] == "2026-11-30T12:00:00Z"
    known = one({"unchanged_since": lambda vehicle: "2026-11-01T00:00:00Z" if vehicle["stock"] == "S1" else None})
    assert known.only["updated_at"] == "2026-11-01T00:00:00Z"


# 8. VINs.


def test_point_8_small_letters_and_spaces_are_repaired() -> None:
    reading = one(vin="2hgfe1f78nh 000001")
    assert reading.only["vin"] == "2HGFE1F78NH000001"
    assert reading.findings() == [("repaired", 2, "vin")]


@pytest.mark.parametrize("text", ["2HGFE1F78NH00000", "2HGFE1F78NH0000011", "2HGFE1F78NHO00001", "IHGFE1F78NH000001"])
def test_point_8_a_broken_vin_leaves_the_row_under_its_stock_number(text: str) -> None:
    reading = one(vin=text)
    assert "vin" not in reading.only
    assert reading.only["vehicle_id"] == "S1"
    assert reading.findings() == [("repaired", 2, "vin")]


def test_point_8_a_bad_check_digit_is_a_warning() -> None:
    reading = one(vin="2HGFE1F79NH000001")
    assert reading.only["vin"] == "2HGFE1F79NH000001"
    assert reading.findings() == [("warning", 2, "vin")]
    # The VIN that everybody checks with: seventeen ones (49 CFR 565.15(c): the sum is 89, 89 mod 11 is 1).
    assert one(vin="1" * 17).findings() == []


# 9. The same vehicle twice.


def test_point_9_of_two_rows_of_one_vin_the_latest_update_counts_else_the_last() -> None:
    rows = f"{HEADER},lastupdated\n{CIVIC},2026-11-20\n{CIVIC.replace('24990', '23990')},%s\n"
    for later, price, loser in (("2026-11-21", 23990, 2), ("2026-11-19", 24990, 3), ("", 23990, 2)):
        reading = read(rows % later)
        assert reading.only["price"] == price
        assert reading.findings() == [("duplicate", loser, "")]
        assert (reading.report.rows, reading.report.imported) == (2, 1)


def test_point_9_one_vin_in_two_rooftops_is_two_listings_and_reported() -> None:
    reading = read(f"{HEADER},dealername\n{CIVIC},North\n{CIVIC},South\n", rooftop=None)
    assert {vehicle["rooftop"] for vehicle in reading.vehicles} == {"North", "South"}
    assert {vehicle["vehicle_id"] for vehicle in reading.vehicles} == {
        "north:2HGFE1F78NH000001",
        "south:2HGFE1F78NH000001",
    }
    assert reading.findings() == [("warning", 3, "vin")]


def test_point_9_two_vehicles_with_one_id_stay_two() -> None:
    reading = read(f"vehicle_id,{HEADER}\nA1,{CIVIC}\na1,{ACCORD}\n")
    assert {vehicle["vehicle_id"] for vehicle in reading.vehicles} == {"A1", "1HGCV1F33LA000001"}
    assert reading.findings() == [("repaired", 3, "vehicle_id")]


def test_point_9_one_stock_number_without_a_vin_is_one_listing() -> None:
    reading = read("stock,type,make,model,price\nS1,Used,Honda,Civic,1000\ns1,Used,Honda,Civic,2000\n")
    assert reading.only["price"] == 2000
    assert reading.findings() == [("duplicate", 2, "")]


# 10. Rows that cannot be listings.


def test_point_10_bad_rows_are_reported_with_line_and_reason_and_the_rest_is_imported() -> None:
    lines = [HEADER, CIVIC, "only,three,cells", ",,Used,2020,Honda,Fit,1,2", "X,S7,Used,2020,,,1,2", ACCORD]
    reading = read("\n".join(lines))
    assert [vehicle["model"] for vehicle in reading.vehicles] == ["Civic", "Accord"]
    assert reading.findings() == [("refused", 3, ""), ("refused", 4, ""), ("refused", 5, "")]
    assert len({finding.reason for finding in reading.report.findings}) == 3


def test_point_10_a_quotation_mark_that_is_never_closed_costs_its_own_row_only() -> None:
    broken = CIVIC.replace("Civic", '"Civic').replace("S1", "S3")
    reading = read(
        "\n".join(
            [
                HEADER,
                CIVIC,
                broken,
                ACCORD,
                ACCORD.replace("S2", "S4").replace("1HGCV1F33LA000001", "1HGCW1F37LA000001"),
                "",
            ]
        )
    )
    assert [vehicle["stock"] for vehicle in reading.vehicles] == ["S1", "S2", "S4"]
    assert ("refused", 3, "") in reading.findings()


# 11 and 12. Delisting by absence: this package's part is to say when a file is no inventory at all.


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n\n  \n",
        HEADER.encode() + b"\n",
        b"[]",
        b'{"vehicles": []}',
        b"<inventory></inventory>",
        b"just some text\nand more of it\n",
        b"%PDF-1.7 binary",
        b"\x89PNG\r\n\x1a\n" + bytes(200),
        gzip.compress(HEADER.encode() + b"\n" + CIVIC.encode(), mtime=0)[:-12],
        b'[{"vin": "2HGFE1F78NH000001", "make": "Honda", "model": "Civic"}, {"vin": "2HG',
        b"<inventory><vehicle><vin>2HGFE1F78NH000001</vin></vehicle>",
    ],
)
def test_point_11_a_file_that_is_empty_unreadable_or_broken_off_is_refused_as_a_whole(data: bytes) -> None:
    with pytest.raises(FeedError) as raised:
        read(data)
    assert str(raised.value)


def test_point_12_a_vehicle_has_the_same_id_whenever_the_file_is_read_and_wherever_its_row_stands() -> None:
    forwards = read(f"{HEADER}\n{CIVIC}\n{ACCORD}\n")
    backwards = read(f"{HEADER}\n{ACCORD}\n{CIVIC}\n")
    assert {v["vehicle_id"] for v in forwards.vehicles} == {v["vehicle_id"] for v in backwards.vehicles}


def test_point_12_what_the_feed_says_is_sold_is_left_out() -> None:
    reading = read(f"{HEADER},status\n{CIVIC},In Stock\n{ACCORD},Sold\n")
    assert reading.only["status"] == "available"
    assert reading.findings() == [("left_out", 3, "status")]


# 13. A price far from the MSRP.


def test_point_13_a_price_under_a_quarter_of_the_msrp_is_a_warning() -> None:
    odd = one(price="1495", msrp="38000", type="New")
    assert odd.only["price"] == 1495
    assert odd.findings() == [("warning", 2, "price")]
    assert one(price="9500", msrp="38000", type="New").findings() == []
    assert one(price="4000", msrp="38000", year="2012").findings() == []


# 14. Usual short words.


@pytest.mark.parametrize(
    ("column", "text", "member", "word", "kept"),
    [
        ("fuel", "Gasoline Fuel", "fuel", "gas", False),
        ("fuel", "Plug-In Electric/Gas", "fuel", "phev", False),
        ("fuel", "Electric Fuel System", "fuel", "bev", False),
        ("fuel", "Gas/Electric Hybrid", "fuel", "hybrid", False),
        ("body", "4dr Car", "body", "sedan", True),
        ("body", "Sport Utility", "body", "suv", False),
        ("body", "Crew Cab Pickup", "body", "truck", True),
        ("drivetrain", "All Wheel Drive", "driveline", "awd", False),
        ("drivetrain", "4x4", "driveline", "4wd", False),
        ("transmission", "Automatic w/OD", "transmission", "automatic", True),
        ("transmission", "8-Speed Automatic", "transmission", "automatic", True),
        ("transmission", "Continuously Variable (CVT)", "transmission", "cvt", True),
        ("transmission", "6-Speed Manual", "transmission", "manual", True),
    ],
)
def test_point_14_words_become_the_usual_short_ones(column: str, text: str, member: str, word: str, kept: bool) -> None:
    reading = one(**{column: text})
    assert reading.only[member] == word
    assert reading.only.get("other_attributes", {}) == ({f"{member}_description": text} if kept else {})
    assert reading.findings() == []


def test_point_14_a_word_in_no_table_stays_as_it_is() -> None:
    assert one(body="Monster").only["body"] == "Monster"


# 15. Columns that nobody maps.


def test_point_15_unmapped_columns_are_listed_and_kept_only_if_asked_for() -> None:
    cells = {"Warehouse Slot": "B7", "Tow Rating": "-"}
    plain = one(**cells)
    assert plain.report.unmapped_columns == ["Warehouse Slot", "Tow Rating"]
    assert "other_attributes" not in plain.only
    assert one({"keep_unmapped": True}, **cells).only["other_attributes"] == {"warehouse_slot": "B7"}


def test_point_15_the_operators_mapping_wins_over_the_table() -> None:
    reading = one({"mapping": {"all_in_price": "Drive Away"}}, **{"Drive Away": "30000"})
    assert reading.only["price"] == 30000
    assert reading.report.unmapped_columns == []
    assert one({"mapping": {"trim": "model"}}, model="LX", modelname="Civic").only["trim"] == "LX"


def test_point_15_a_mapped_column_that_the_file_does_not_have_is_a_warning() -> None:
    reading = one({"mapping": {"offer_price": "Our Prize", "trim": "Level"}}, price="30000", level="LX")
    assert "price" not in reading.only
    assert reading.report.warnings == [
        "offer_price is mapped to the column 'Our Prize', which the file does not have; nothing else gave it"
    ]


def test_point_15_a_mapped_key_that_only_some_rows_have_is_no_warning() -> None:
    rows = '[{"stock": "S1", "make": "Honda", "model": "Civic"}, {"stock": "S2", "make": "Honda", "model": "Civic", '
    reading = read(rows + '"Drive Away": "30000"}]', mapping={"all_in_price": "Drive Away"})
    assert [vehicle.get("price") for vehicle in reading.vehicles] == [None, 30000]
    assert not [warning for warning in reading.report.warnings if "mapped" in warning]


def test_point_15_a_mapping_to_no_field_is_refused() -> None:
    with pytest.raises(FeedError, match="no such field: colour_of_the_sky"):
        one({"mapping": {"colour_of_the_sky": "x"}})
