"""Names of the master keys with which values of a store were sealed (encrypted); the keys themselves are not stored.

The name of a key is recorded at its first use. So a server that has only another key notices this, and does not seal
values that the other servers cannot open.
"""

from horae.env import Instant
from horae.store.script import Fetch, Insert, Script, Statement

PREFIX = "master_key:"
KNOWN = Statement("known_master_keys", f"SELECT key FROM store WHERE key >= '{PREFIX}' AND key < 'master_key;'")


def known_keys() -> Script[frozenset[str]]:
    """Return the names of the recorded master keys."""
    return frozenset([row[0].removeprefix(PREFIX) for row in (yield Fetch(KNOWN))])


def record_key(name: str, now: Instant) -> Script[None]:
    """Record the first use of a master key."""
    yield Insert("store", (("key", "text"), ("value", "text")), [(PREFIX + name, str(now))], "ON CONFLICT DO NOTHING")
