"""Answers to exchanges: slices with their items and definitions, encoded."""

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
from horae.model.executions.slice import Running
from horae.model.executions.tracer import Tracer
from horae.model.fleet.protocol import ABSENT, Answer, Grant, Range, Request
from horae.model.fleet.session import Session
from horae.store.contract import Store

CACHE_BYTES = 32 * 1024 * 1024


class ParcelCache:
    """Parcels lately written or granted; they never change."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: OrderedDict[UUID, Parcel] = OrderedDict()
        self._bytes = 0

    def keep(self, parcels: Iterable[Parcel]) -> None:
        for parcel in parcels:
            if parcel.id not in self._kept:
                self._kept[parcel.id] = parcel
                self._bytes += _weight(parcel)
        while self._bytes > CACHE_BYTES:
            _, old = self._kept.popitem(last=False)
            self._bytes -= _weight(old)

    def known(self, id: UUID) -> Parcel | None:
        """A parcel that is kept."""
        return self._kept.get(id)

    async def get(self, ids: Iterable[UUID]) -> dict[UUID, Parcel]:
        """Parcels by id, from memory or from the store."""
        wanted = set(ids)
        found = {id: self._kept[id] for id in wanted if id in self._kept}
        missing = sorted(wanted - found.keys())
        if missing:
            read = await self._store.parcels(missing)
            found |= {parcel.id: parcel for parcel in read}
            self.keep(read)
        return found


def _weight(parcel: Parcel) -> int:
    return 500 + len(parcel.items.blob) + len(parcel.items.ends) + len(parcel.extras or b"")


class AnswerBuilder:
    """Builds answers for workers."""

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
        """Addresses of the servers that workers may use."""
        return self._presence.addresses

    async def encode(
        self,
        slices: Sequence[Running],
        session: Session,
        *,
        requests: Sequence[Request] = (),
        hand_back: Sequence[Range] = (),
        ignored: Sequence[Range] = (),
        drain: bool = False,
    ) -> bytes:
        """One answer: slices with items, definitions and secrets, requests, and what the worker should forget.

        The secrets are those of the session's namespace, and its epoch makes the tokens: a copy of the store's epoch in
        memory may be older than the session.
        """
        parcels = await self.parcels.get(s.parcel for s in slices) if slices else {}
        keys = {(p.envelope.job, p.envelope.version) for p in parcels.values()}
        definitions = await self._directory.definitions.get(sorted(keys)) if keys else {}
        given = await self._given(session.namespace, definitions)
        if self._verbose:
            execution_log.log_grants(slices, parcels, definitions)
        answer = Answer(
            slices=[self._grant(s, session.epoch, parcels[s.parcel], definitions) for s in slices],
            jobs={f"{job}:{version}": Raw(known.spec) for (job, version), known in definitions.items()},
            secrets=given.values,
            secret_problems=given.problems,
            requests=list(requests),
            hand_back=list(hand_back),
            ignored=list(ignored),
            servers=self._presence.addresses,
            drain=drain,
            now=self._env.now(),
        )
        return self._encoder.encode(answer)

    async def sensitive(self, parcels: Iterable[UUID]) -> set[UUID]:
        """Those of these parcels whose executions are of sensitive jobs."""
        known = await self.parcels.get(parcels)
        versions = {id: (parcel.envelope.job, parcel.envelope.version) for id, parcel in known.items()}
        definitions = await self._directory.definitions.get(sorted(set(versions.values())))
        return {id for id, version in versions.items() if version in definitions and definitions[version].sensitive}

    async def _given(self, namespace: int, definitions: Mapping[Version, CachedDefinition]) -> GrantedSecrets:
        """The secrets that granted jobs refer to; most refer to none."""
        wanted = {name for known in definitions.values() for name in known.secrets}
        return await self._secrets.give(namespace, sorted(wanted)) if wanted else NOTHING

    def _grant(self, s: Running, epoch: int, parcel: Parcel, definitions: Mapping[Version, CachedDefinition]) -> Grant:
        e = parcel.envelope
        items, problem = parcel.items.part(s.lo, s.hi), ""
        known = definitions.get((e.job, e.version))
        if known is not None and known.sensitive:
            items, problem = self._seals.granted(e.job, items)
        token = epoch << 32 | s.attempt
        return Grant(
            parcel=s.parcel, lo=s.lo, hi=s.hi, job=s.job, version=e.version, attempt=s.attempt,
            token=token, token_text=str(token), failures=s.failures, due_at=e.due_at, deadline=e.deadline,
            priority=e.priority, parent=e.parent, items=[Raw(item) for item in items], problem=problem,
            extras=self._extras(parcel, s, "" if known is None else known.name),
        )  # fmt: skip

    def _extras(self, parcel: Parcel, s: Running, job: str) -> Raw:
        if self._tracer is not None:
            return Raw(msgspec.json.encode(self._tracer.granted(s, parcel, job)))
        if parcel.extras is None:
            return ABSENT
        return Raw(msgspec.json.encode(extras_of(parcel.extras, s.lo, s.hi)))
