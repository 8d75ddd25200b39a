"""A file read in another process gives what it gives in this one, and the process ends with its reader."""

import io
import json
from pathlib import Path

import pytest
from tests.feed.reading import NOW

from forecourt.feed import FeedError, FeedOptions, KeptBodies, Report, Tracked, read_beside, read_bodies

OPTIONS = FeedOptions("d", rooftop="Main", now=NOW)


def sheet(count: int) -> bytes:
    """Return a feed of so many vehicles and a row that is too short."""
    rows = "".join(f"S{number},Used,Honda,Civic,9000,Sunroof\n" for number in range(count))
    return f"stock,type,make,model,price,options\nS1\n{rows}".encode()


def test_another_process_reads_the_same_and_reports_the_same(tmp_path: Path) -> None:
    path = tmp_path / "feed.csv"
    path.write_bytes(sheet(1000))
    here, there, told = Report(), Report(), list[int]()
    expected = list(read_bodies(io.BytesIO(path.read_bytes()), OPTIONS, KeptBodies(), here))
    assert list(read_beside(path, OPTIONS, KeptBodies(), there, told.append)) == expected
    assert there == here
    assert (there.rows, there.imported, there.refused) == (1001, 1000, 1)
    assert told[-1] == path.stat().st_size


def test_every_process_writes_a_vehicle_the_same_whatever_its_hash_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "feed.csv"
    columns = "stock,type,make,model,doors,passenger capacity,market class,series detail,body,fuel"
    path.write_text(f"{columns}\nS1,Used,Honda,Civic,4,5,Compact,Sport Touring,Sedan 4dr,Gasoline Fuel\n")
    found = set()
    for seed in range(4):
        monkeypatch.setenv("PYTHONHASHSEED", str(seed))
        (kept,) = read_beside(path, OPTIONS, KeptBodies(), Report(), lambda _: None)
        found.add(kept.body)
    assert len(found) == 1
    assert list(json.loads(found.pop())["other_attributes"])[-4:] == [
        "doors",
        "passenger_capacity",
        "market_class",
        "series_detail",
    ]


def test_vehicles_with_long_descriptions_are_handed_over_a_few_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "feed.csv"
    text = "x" * 200_000
    path.write_text("stock,type,make,model,description\n" + "".join(f"S{at},Used,A,B,{text}\n" for at in range(10)))
    told: list[int] = []
    assert len(list(read_beside(path, OPTIONS, KeptBodies(), Report(), told.append))) == 10
    assert len(told) >= 5


@pytest.mark.parametrize(("data", "reason"), [(b"", "the file is empty"), (b"%PDF-1.7 x", "PDF"), (None, "opened")])
def test_a_file_that_is_no_feed_is_one_error(tmp_path: Path, data: bytes | None, reason: str) -> None:
    path = tmp_path / "feed.csv"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(FeedError, match=reason):
        list(read_beside(path, OPTIONS, KeptBodies(), Report(), lambda _: None))


def test_leaving_early_ends_the_process(tmp_path: Path) -> None:
    path = tmp_path / "feed.csv"
    path.write_bytes(sheet(5000))
    found = read_beside(path, OPTIONS, KeptBodies(), Report(), lambda _: None)
    assert next(found).vehicle_id == "S0"
    # It waits for the process, so one that went on would keep this from returning.
    found.close()


def test_a_tracked_stream_counts_what_is_read() -> None:
    told: list[int] = []
    stream = Tracked(io.BytesIO(b"abcdef"), told.append)
    assert (stream.read(4), stream.read(), stream.read()) == (b"abcd", b"ef", b"")
    assert told == [4, 6, 6]
