"""The arithmetic of docs/SCALE.md."""

import pytest

from bench.pages.sizing import Cost, Needs, bytes_kept, cores, database_limit, fires, needs, shown_bytes


def test_storage_is_a_product():
    assert bytes_kept(1_000_000, 7, 100) == 700_000_000
    assert bytes_kept(100_000_000, 90, 0.5) == 4_500_000_000


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (700e6, "700 MB"), (2.34e12, "2.34 TB"), (4.2e18, "4,200 PB")],
)
def test_bytes_are_shown_as_disks_are_sold(count, shown):
    assert shown_bytes(count) == shown


def test_a_rate_needs_cores():
    assert cores(100_000, 5) == 0.5
    assert database_limit(8, Cost(server=5, worker=5, database=2)) == 4_000_000


def test_no_part_is_planned_to_be_busier_than_half():
    assert needs(100_000, Cost(server=5, worker=6, database=21)) == Needs(servers=1, workers=2, database=5)


def test_schedules_fire_by_their_interval():
    assert fires(10_000_000, 3600) == pytest.approx(2777.78, abs=0.01)
