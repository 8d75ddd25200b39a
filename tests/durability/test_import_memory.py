"""A feed ten times as large as the memory that its import may take is imported all the same."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

IS_LONG = bool(os.environ.get("FORECOURT_LONG"))
ALLOWANCE = (200 if IS_LONG else 6) << 20
"""What the import may add to the memory of a process that has imported a small feed."""
ROW = 8192
SMALL = 600
"""Rows; enough for a file that is read in a process of its own (from 4 MiB)."""
ROOT = Path(__file__).resolve().parents[2]


def write(path: Path, size: int) -> int:
    """Write a feed of at least so many bytes, of which no two rows have much in common; return how many rows."""
    rows = 0
    with path.open("w", encoding="ascii") as file:
        taken = file.write("stock,type,make,model,price,options,description\n")
        while taken < size:
            words = f"{rows:08} "
            options = "|".join(f"Sunroof {rows} {at}" for at in range(8))
            text = words * ((ROW - len(options)) // len(words))
            taken += file.write(f"S{rows},Used,Make{rows},Model{rows},{9000 + rows % 5000},{options},{text}\n")
            rows += 1
    return rows


@pytest.mark.skipif(sys.platform != "linux", reason="the limit and the measure are Linux's")
def test_a_feed_ten_times_as_large_as_its_memory_is_imported(tmp_path: Path) -> None:
    small, large = tmp_path / "small.csv", tmp_path / "large.csv"
    assert write(small, SMALL * ROW) < 1000
    rows = write(large, 10 * ALLOWANCE)
    assert large.stat().st_size >= 10 * ALLOWANCE
    address = f"sqlite:{tmp_path / 'forecourt.db'}"
    run = subprocess.run(
        [sys.executable, "-m", "tests.durability.bounded", str(small), str(large), address, str(ALLOWANCE)],
        check=True,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        # One arena: the allocator reserves address space per thread that it never uses, and the limit counts it.
        env=os.environ | {"MALLOC_ARENA_MAX": "1"},
    )
    found = json.loads(run.stdout)
    assert found["imported"] == rows
    assert found["own_bytes"] < ALLOWANCE
    assert found["worker_bytes"] < ALLOWANCE
    # The limit is one that a whole file does not fit under.
    assert found["is_limited"]
