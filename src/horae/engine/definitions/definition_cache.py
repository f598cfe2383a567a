"""A bounded cache of job definitions as workers get them.

An entry never becomes stale, because a version never changes.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from uuid import UUID

import msgspec
from msgspec import Struct

from horae.model.definitions.job import Spec
from horae.model.definitions.retry import RetryPolicy
from horae.model.definitions.timeouts import AttemptTimeouts
from horae.model.tenancy.secret_refs import is_stored
from horae.store.contract import Store

Version = tuple[UUID, int]  # a job and its version
MOST = 10_000
MOST_BYTES = 32 * 1024 * 1024
OVERHEAD = 1000  # bytes of an entry in addition to its text


class CachedDefinition(Struct, frozen=True):
    """A version of a job: its text, and the parts of it that servers use often."""

    spec: bytes
    retry: RetryPolicy
    allowance: AttemptTimeouts  # the time limits of an attempt
    secrets: tuple[str, ...] = ()  # the stored secrets that it refers to
    sensitive: bool = False
    name: str = ""


class DefinitionCache:
    """A cache by job and version. The least recently used entries are removed first."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._cached: OrderedDict[Version, CachedDefinition] = OrderedDict()
        self._policies: dict[Version, RetryPolicy] = {}
        self._bytes = 0

    @property
    def policies(self) -> Mapping[Version, RetryPolicy]:
        """The retry policies of the cached versions."""
        return self._policies

    def cached(self, version: Version) -> CachedDefinition | None:
        """Return a cached definition, or None. Nothing is read from the store."""
        return self._cached.get(version)

    async def get(self, wanted: Sequence[Version]) -> dict[Version, CachedDefinition]:
        """Return definitions from memory or from the store."""
        found: dict[Version, CachedDefinition] = {}
        for version in wanted:
            known = self._cached.get(version)
            if known is not None:
                self._cached.move_to_end(version)
                found[version] = known
        missing = [version for version in wanted if version not in found]
        if missing:
            read = await self._store.definitions(missing)
            fresh = {version: _read(spec) for version, spec in read.items()}
            found |= fresh
            self._keep(fresh)
        return found

    def _keep(self, fresh: Mapping[Version, CachedDefinition]) -> None:
        for version, definition in fresh.items():
            if version not in self._cached:
                self._cached[version] = definition
                self._policies[version] = definition.retry
                self._bytes += len(definition.spec) + OVERHEAD
        while len(self._cached) > MOST or self._bytes > MOST_BYTES:
            old, definition = self._cached.popitem(last=False)
            del self._policies[old]
            self._bytes -= len(definition.spec) + OVERHEAD


def _read(spec: bytes) -> CachedDefinition:
    read = msgspec.json.decode(spec, type=Spec)
    secrets = tuple(filter(is_stored, read.references))
    return CachedDefinition(spec, read.retry, read.attempt_timeouts, secrets, read.sensitive, read.name)
