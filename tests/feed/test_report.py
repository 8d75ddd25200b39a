"""The report is complete in its counts and bounded in its lists."""

from forecourt.feed import Report


def test_lists_are_bounded_and_what_is_not_listed_is_counted() -> None:
    report = Report()
    for line in range(5000):
        report.refuse(line, "has no make or no model")
    report.add("warning", 1, "vin", "odd")
    payload = report.to_payload()
    assert (payload["rows"], payload["refused"], payload["not_listed"]) == (5000, 5000, 4000)
    assert len(payload["findings"]) == 1001
    assert {"kind": "refused", "field": "", "reason": "has no make or no model", "count": 5000} in payload["reasons"]


def test_what_became_of_the_stock_is_there_once_it_is_known() -> None:
    report = Report(rows=10, imported=9)
    assert "removed" not in report.to_payload()
    report.stored(added=1, changed=2, unchanged=6, removed=3)
    payload = report.to_payload()
    assert [payload[name] for name in ("added", "changed", "unchanged", "removed")] == [1, 2, 6, 3]


def test_a_person_reads_lines_with_number_field_and_reason() -> None:
    report = Report()
    report.add("repaired", 7, "price", "cents were rounded to the nearest dollar")
    report.name_columns(["Slot"], ["invoice"])
    lines = report.lines()
    assert "line 7: repaired: price: cents were rounded to the nearest dollar" in lines
    assert "columns that nothing was made of: Slot" in lines
    assert "columns left out on purpose: invoice" in lines
