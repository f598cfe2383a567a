"""The circuit gate: a job, or one of its circuit keys, failed too often."""

from horae.engine.executions.probes.case import Case, ExecutionCase, Sources
from horae.model.admission.circuit import CircuitStatus, why_blocked
from horae.model.admission.keys import keys_of
from horae.model.executions.gates import Blocker, closed
from horae.store.admission import circuit_reads


async def circuit(sources: Sources, case: ExecutionCase) -> list[Blocker]:
    key = keys_of(case.place.keys).circuit
    if key is None:
        return []
    status = await sources.store.read(lambda: circuit_reads.status_of((case.job.id, key)))
    if case.execution.id in status.probes and case.execution.reason != "circuit":
        return []
    if status.blocks_starts:
        return [_shut(status, case)]
    if case.execution.reason != "circuit":
        return []
    message = f'The circuit of "{case.job.name}" is closed again, so the execution goes on in a moment.'
    return [closed("circuit", message, until=case.now, job=case.job.name, key=key or None, state="closed")]


async def circuit_of_job(sources: Sources, case: Case) -> list[Blocker]:
    """Check a job's own circuit. Open circuits of single keys do not stop the whole job."""
    if case.job.spec.circuit is None or case.job.spec.circuit.key is not None:
        return []
    status = await sources.store.read(lambda: circuit_reads.status_of((case.job.id, "")))
    return [_shut(status, case)] if status.blocks_starts else []


def _shut(status: CircuitStatus, case: Case) -> Blocker:
    key = f" --key {status.key!r}" if status.key else ""
    remedy = f"Probes succeed, or an operator resets it: `horae circuits reset {case.job.name}{key}`."
    return closed(
        "circuit",
        why_blocked(status, case.job.name),
        remedy,
        until=status.until,
        job=case.job.name,
        key=status.key or None,
        state=status.state,
        forced=status.forced,
        cause=status.cause,
        by=status.by or None,
    )
