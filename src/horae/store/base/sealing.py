"""Which master keys a store has been sealed with: their names, never the keys.

A server with another key than those before it would seal what they cannot open; so the first use of a key is noted.
"""

from horae.env import Instant
from horae.store.script import Fetch, Insert, Script, Statement

PREFIX = "master_key:"
KNOWN = Statement("known_master_keys", f"SELECT key FROM store WHERE key >= '{PREFIX}' AND key < 'master_key;'")


def known() -> Script[frozenset[str]]:
    """The names of the master keys that have sealed something here."""
    return frozenset([row[0].removeprefix(PREFIX) for row in (yield Fetch(KNOWN))])


def note(name: str, now: Instant) -> Script[None]:
    """A master key seals from now on."""
    yield Insert("store", (("key", "text"), ("value", "text")), [(PREFIX + name, str(now))], "ON CONFLICT DO NOTHING")
