"""Answers to exchanges: granted slices with their items and definitions, encoded."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

import msgspec
from msgspec import Raw

from horae.engine.base import execution_log
from horae.engine.base.execution_sealing import ExecutionSealer
from horae.engine.base.presence import Presence
from horae.engine.definitions.definition_cache import CachedDefinition, Version
from horae.engine.definitions.directory import LocalDirectory
from horae.engine.tenancy.secrets import NOTHING, GrantedSecrets, Secrets
from horae.env import Env
from horae.model.executions.parcel import Parcel, extras_of
from horae.model.executions.slice import RunningSlice
from horae.model.executions.tracer import Tracer
from horae.model.fleet.protocol import ABSENT, Answer, Grant, Range, Request
from horae.model.fleet.session import Session
from horae.store.contract import Store

CACHE_BYTES = 32 * 1024 * 1024


class ParcelCache:
    """A cache of recently written or granted parcels. An entry never becomes stale, because a parcel never changes."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._cached: OrderedDict[UUID, Parcel] = OrderedDict()
        self._bytes = 0

    def add(self, parcels: Iterable[Parcel]) -> None:
        for parcel in parcels:
            if parcel.id not in self._cached:
                self._cached[parcel.id] = parcel
                self._bytes += _weight(parcel)
        while self._bytes > CACHE_BYTES:
            _, old = self._cached.popitem(last=False)
            self._bytes -= _weight(old)

    def cached(self, parcel_id: UUID) -> Parcel | None:
        """Return a cached parcel, or None."""
        return self._cached.get(parcel_id)

    async def get(self, ids: Iterable[UUID]) -> dict[UUID, Parcel]:
        """Return parcels by id, from memory or from the store."""
        wanted = set(ids)
        found = {parcel_id: self._cached[parcel_id] for parcel_id in wanted if parcel_id in self._cached}
        missing = sorted(wanted - found.keys())
        if missing:
            read = await self._store.parcels(missing)
            found |= {parcel.id: parcel for parcel in read}
            self.add(read)
        return found


def _weight(parcel: Parcel) -> int:
    return 500 + len(parcel.items.blob) + len(parcel.items.ends) + len(parcel.extras or b"")


class AnswerBuilder:
    """Builds answers to workers."""

    def __init__(
        self,
        env: Env,
        directory: LocalDirectory,
        parcels: ParcelCache,
        secrets: Secrets,
        seals: ExecutionSealer,
        presence: Presence,
        tracer: Tracer | None,
        *,
        verbose: bool,
    ) -> None:
        self._env, self._directory, self.parcels = env, directory, parcels
        self._secrets, self._seals, self._presence = secrets, seals, presence
        self._tracer, self._verbose = tracer, verbose
        self._encoder = msgspec.json.Encoder()

    @property
    def servers(self) -> list[str]:
        """The addresses of servers that workers may use."""
        return self._presence.addresses

    async def encode(
        self,
        slices: Sequence[RunningSlice],
        session: Session,
        *,
        requests: Sequence[Request] = (),
        hand_back: Sequence[Range] = (),
        ignored: Sequence[Range] = (),
        drain: bool = False,
    ) -> bytes:
        """Encode one answer: slices with items, definitions and secrets, and what the worker must do.

        `requests` are requests to stop executions, `hand_back` are prefetched ranges that the worker must return, and
        `ignored` are reported ranges that matched nothing. The secrets are read in the session's namespace. The tokens
        are made with the session's epoch, because this server's copy of the store's epoch may be older.
        """
        parcels = await self.parcels.get(running.parcel for running in slices) if slices else {}
        keys = {(parcel.envelope.job, parcel.envelope.version) for parcel in parcels.values()}
        definitions = await self._directory.definitions.get(sorted(keys)) if keys else {}
        secrets = await self._given(session.namespace, definitions)
        if self._verbose:
            execution_log.log_grants(slices, parcels, definitions)
        answer = Answer(
            slices=[self._grant(running, session.epoch, parcels[running.parcel], definitions) for running in slices],
            jobs={f"{job}:{version}": Raw(known.spec) for (job, version), known in definitions.items()},
            secrets=secrets.values,
            secret_problems=secrets.problems,
            requests=list(requests),
            hand_back=list(hand_back),
            ignored=list(ignored),
            servers=self._presence.addresses,
            drain=drain,
            now=self._env.now(),
        )
        return self._encoder.encode(answer)

    async def sensitive_parcels(self, parcels: Iterable[UUID]) -> set[UUID]:
        """Return the parcels that belong to sensitive jobs."""
        known = await self.parcels.get(parcels)
        versions = {parcel_id: (parcel.envelope.job, parcel.envelope.version) for parcel_id, parcel in known.items()}
        definitions = await self._directory.definitions.get(sorted(set(versions.values())))
        return {
            parcel_id
            for parcel_id, version in versions.items()
            if version in definitions and definitions[version].sensitive
        }

    async def _given(self, namespace: int, definitions: Mapping[Version, CachedDefinition]) -> GrantedSecrets:
        """Return the secrets that granted jobs refer to. Most jobs refer to none."""
        wanted = {name for known in definitions.values() for name in known.secrets}
        return await self._secrets.grant(namespace, sorted(wanted)) if wanted else NOTHING

    def _grant(
        self, running: RunningSlice, epoch: int, parcel: Parcel, definitions: Mapping[Version, CachedDefinition]
    ) -> Grant:
        envelope = parcel.envelope
        items, problem = parcel.items.part(running.lo, running.hi), ""
        known = definitions.get((envelope.job, envelope.version))
        if known is not None and known.sensitive:
            items, problem = self._seals.open_for_worker(envelope.job, items)
        token = epoch << 32 | running.attempt
        return Grant(
            parcel=running.parcel, lo=running.lo, hi=running.hi, job=running.job, version=envelope.version,
            attempt=running.attempt, token=token, token_text=str(token), failures=running.failures,
            due_at=envelope.due_at, deadline=envelope.deadline, priority=envelope.priority, parent=envelope.parent,
            items=[Raw(item) for item in items], problem=problem,
            extras=self._extras(parcel, running, "" if known is None else known.name),
        )  # fmt: skip

    def _extras(self, parcel: Parcel, running: RunningSlice, job: str) -> Raw:
        if self._tracer is not None:
            return Raw(msgspec.json.encode(self._tracer.granted(running, parcel, job)))
        if parcel.extras is None:
            return ABSENT
        return Raw(msgspec.json.encode(extras_of(parcel.extras, running.lo, running.hi)))
