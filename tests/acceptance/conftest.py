"""Fleets of processes, one per store."""

import pytest

from tests.acceptance.fleet import Fleet


@pytest.fixture(params=["sqlite", "postgres"])
def fleet(request, tmp_path):
    """Provide a fleet on a SQLite file, and one on PostgreSQL."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path}/horae.db"
    else:
        url = request.getfixturevalue("postgres_url")
    fleet = Fleet(tmp_path, url)
    yield fleet
    failed = getattr(request.node, "rep_call", None)
    if failed is None or failed.failed:
        print(fleet.logs())
    fleet.close()


@pytest.fixture
def pg_fleet(postgres_url, tmp_path):
    """Provide several servers, which need PostgreSQL."""
    fleet = Fleet(tmp_path, postgres_url)
    yield fleet
    print(fleet.logs())
    fleet.close()
