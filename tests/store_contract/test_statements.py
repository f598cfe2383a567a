"""Ops as PostgreSQL statements: each text is planned and kept on every connection, so there are few of them."""

from itertools import product

import pytest

pytest.importorskip("asyncpg")

from horae.store.postgres.statements import execute
from horae.store.script import Insert, Together


class Heard:
    """A connection that remembers what it was asked."""

    def __init__(self):
        self.texts = set()

    async def fetch(self, text, *params):
        self.texts.add(text)
        return []


async def test_changes_that_go_together_are_few_statements_however_many_rows_each_has():
    connection = Heard()
    for counts in product((1, 2, 3), repeat=4):
        inserts = [Insert(f"t{i}", (("a", "int"),), [(0,)] * count) for i, count in enumerate(counts)]
        await execute(connection, Together(inserts))

    assert len(connection.texts) == 2  # for single rows, and for sets of them
