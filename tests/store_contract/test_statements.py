"""Ops as PostgreSQL statements: each text is planned and cached on every connection, so there are few texts."""

from itertools import product

import pytest

pytest.importorskip("asyncpg")

from horae.store.postgres.statements import execute
from horae.store.script import Insert, Together


class RecordingConnection:
    """A connection that records its statements."""

    def __init__(self):
        self.texts = set()

    async def fetch(self, text, *params):
        self.texts.add(text)
        return []


async def test_changes_sent_together_use_few_statements_for_any_number_of_rows():
    connection = RecordingConnection()
    for counts in product((1, 2, 3), repeat=4):
        inserts = [Insert(f"t{i}", (("a", "int"),), [(0,)] * count) for i, count in enumerate(counts)]
        await execute(connection, Together(inserts))

    assert len(connection.texts) == 2  # for single rows, and for sets of them
