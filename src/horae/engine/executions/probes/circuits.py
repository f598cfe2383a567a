"""The gate of circuits: a job, or what an execution is about, failed too often."""

from horae.engine.executions.probes.case import Case, ExecutionCase, Sources
from horae.model.admission.circuit import CircuitStatus, why_shut
from horae.model.admission.keys import keys_of
from horae.model.executions.gates import Blocker, closed
from horae.store.admission import circuit_reads


async def circuit(sources: Sources, case: ExecutionCase) -> list[Blocker]:
    key = keys_of(case.place.keys).circuit
    if key is None:
        return []
    standing = await sources.store.read(lambda: circuit_reads.status_of((case.job.id, key)))
    if case.execution.id in standing.probes and case.execution.reason != "circuit":
        return []
    if standing.is_shut:
        return [_shut(standing, case)]
    if case.execution.reason != "circuit":
        return []
    message = f'The circuit of "{case.job.name}" is closed again: it goes on in a moment.'
    return [closed("circuit", message, until=case.now, job=case.job.name, key=key or None, state="closed")]


async def circuit_of_job(sources: Sources, case: Case) -> list[Blocker]:
    """A job's own circuit; of those of its keys, that some are shut keeps nothing else from starting."""
    if case.job.spec.circuit is None or case.job.spec.circuit.key is not None:
        return []
    standing = await sources.store.read(lambda: circuit_reads.status_of((case.job.id, "")))
    return [_shut(standing, case)] if standing.is_shut else []


def _shut(standing: CircuitStatus, case: Case) -> Blocker:
    key = f" --key {standing.key!r}" if standing.key else ""
    remedy = f"Probes succeed, or somebody resets it: `horae circuits reset {case.job.name}{key}`."
    return closed(
        "circuit",
        why_shut(standing, case.job.name),
        remedy,
        until=standing.until,
        job=case.job.name,
        key=standing.key or None,
        state=standing.state,
        forced=standing.forced,
        cause=standing.cause,
        by=standing.by or None,
    )
