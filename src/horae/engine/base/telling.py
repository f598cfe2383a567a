"""Executions in the server's own log, one line for each turn they take; only when it is to hold everything."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

import structlog

from horae.engine.definitions.definition_cache import CachedDefinition, Version
from horae.model.base.ids import execution_id
from horae.model.base.trace import trace_id_of
from horae.model.executions.parcel import Parcel, extras_of
from horae.model.executions.slice import Running
from horae.store.executions.state_changes import FinishedItems

Known = Callable[[UUID], Parcel | None]  # parcels that are still at hand
Defined = Callable[[Version], CachedDefinition | None]  # and definitions
log = structlog.get_logger("horae.engine")


def granted(
    slices: Iterable[Running], parcels: Mapping[UUID, Parcel], jobs: Mapping[Version, CachedDefinition]
) -> None:
    """Workers got these."""
    for slice in slices:
        parcel = parcels[slice.parcel]
        known = jobs.get((parcel.envelope.job, parcel.envelope.version))
        job = str(slice.job) if known is None else known.name
        for told in _items(slice.parcel, slice.lo, slice.hi, parcel):
            log.debug("attempt granted", job=job, attempt=slice.attempt, session=str(slice.session), **told)


def ended(all: Sequence[FinishedItems], known: Known, definition: Defined) -> None:
    """These are over; a job that is not at hand is told by its id."""
    for one in all:
        parcel = known(one.parcel)
        version = None if parcel is None else (parcel.envelope.job, parcel.envelope.version)
        found = None if version is None else definition(version)
        job = str(one.job) if found is None else found.name
        for told in _items(one.parcel, one.lo, one.hi, parcel):
            log.debug("execution ended", job=job, attempt=one.attempt, outcome=one.state, **told)


def _items(parcel: UUID, lo: int, hi: int, whole: Parcel | None) -> Iterable[dict[str, Any]]:
    extras = [None] * (hi - lo) if whole is None else extras_of(whole.extras, lo, hi)
    for item, extra in enumerate(extras, lo):
        told = {"execution": str(execution_id(parcel, item))}
        trace = None if extra is None else trace_id_of(extra.trace)
        yield told if trace is None else told | {"trace": trace}
