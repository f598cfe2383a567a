"""Log lines of executions in the server's own log, one for each grant and each end. Written in verbose mode only."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

import structlog

from horae.engine.definitions.definition_cache import CachedDefinition, Version
from horae.model.base.ids import execution_id
from horae.model.base.trace import trace_id_of
from horae.model.executions.parcel import Parcel, extras_of
from horae.model.executions.slice import RunningSlice
from horae.store.executions.state_changes import FinishedItems

FindParcel = Callable[[UUID], Parcel | None]  # returns None for a parcel that is not cached
FindDefinition = Callable[[Version], CachedDefinition | None]  # returns None for a definition that is not cached
log = structlog.get_logger("horae.engine")


def log_grants(
    slices: Iterable[RunningSlice], parcels: Mapping[UUID, Parcel], definitions: Mapping[Version, CachedDefinition]
) -> None:
    """Log every execution that was granted to a worker."""
    for running in slices:
        parcel = parcels[running.parcel]
        definition = definitions.get((parcel.envelope.job, parcel.envelope.version))
        job = str(running.job) if definition is None else definition.name
        for fields in _items(running.parcel, running.lo, running.hi, parcel):
            log.debug("attempt granted", job=job, attempt=running.attempt, session=str(running.session), **fields)


def log_ends(ended: Sequence[FinishedItems], find_parcel: FindParcel, find_definition: FindDefinition) -> None:
    """Log every execution that ended. A job that is not cached is logged by its id."""
    for end in ended:
        parcel = find_parcel(end.parcel)
        version = None if parcel is None else (parcel.envelope.job, parcel.envelope.version)
        definition = None if version is None else find_definition(version)
        job = str(end.job) if definition is None else definition.name
        for fields in _items(end.parcel, end.lo, end.hi, parcel):
            log.debug("execution ended", job=job, attempt=end.attempt, outcome=end.state, **fields)


def _items(parcel: UUID, lo: int, hi: int, whole: Parcel | None) -> Iterable[dict[str, Any]]:
    extras = [None] * (hi - lo) if whole is None else extras_of(whole.extras, lo, hi)
    for item, extra in enumerate(extras, lo):
        fields = {"execution": str(execution_id(parcel, item))}
        trace = None if extra is None else trace_id_of(extra.trace)
        yield fields if trace is None else fields | {"trace": trace}
