"""10⁷ rows of results as a frame of polars, without a copy: with REXMIT_ROWS=1, as `make test-long` sets it."""

import os
import pathlib

import pytest

from rexmit import lab

pytest.importorskip("numpy")
polars = pytest.importorskip("polars")
pytestmark = pytest.mark.skipif(os.environ.get("REXMIT_ROWS") != "1", reason="REXMIT_ROWS=1 runs it: a minute, 2 GB")

ROWS = 10_000_000


def resident():
    """The memory of this process in bytes."""
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def addresses(frame):
    """Where the values of all columns of numbers are, per column and batch, but for columns with missing values."""
    columns = (column for column in frame.select(polars.selectors.numeric()) if column.null_count() == 0)
    chunks = (chunk for column in columns for chunk in column.get_chunks())
    return [chunk.to_numpy(allow_copy=False).ctypes.data for chunk in chunks]


def test_ten_million_rows_are_handed_over_in_place(tmp_path):
    flow = lab.ThinFlow(traffic="every 1ms size 10")
    scenario = lab.Scenario(duration="100s", rows=True, network=lab.Network("delay 1ms"), thin={"game": flow})
    table = lab.Study(title="Rows", scenario=scenario, seeds=101).run(store=tmp_path).table("messages")
    assert len(table) >= ROWS
    before = resident()
    frame = polars.DataFrame(table)
    grown = resident() - before
    assert frame.height == len(table)
    # Another frame of the same table has the same memory, and a copy of it has not.
    again = polars.DataFrame(table)
    assert addresses(again) == addresses(frame)
    assert set(addresses(frame.rechunk())).isdisjoint(addresses(frame))
    size = frame.estimated_size()
    assert size > 24 * ROWS
    # A copy would be new memory of this process.
    assert grown < size / 100, f"{grown} of {size} bytes"
    # The frame keeps the memory when the table has gone.
    total = frame["bytes"].sum()
    del table, again
    assert frame["bytes"].sum() == total == 10 * frame.height
