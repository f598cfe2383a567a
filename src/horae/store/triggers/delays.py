"""Delays: reasons why executions that fires or events start cannot run yet; the ledger records them.

A reason is a hold of the queue, a circuit that is not closed, or a quota that had no room when the fire was due.
"""

from collections.abc import Mapping
from uuid import UUID

from horae.model.admission.keys import keys_of
from horae.model.executions.parcel import Envelope
from horae.model.triggers.decisions.decide import LedgerRun

Delays = Mapping[int | UUID | tuple[UUID, str], str]  # a queue, a job, or a job with a circuit key -> reason as text
NO_DELAYS: Delays = {}


def delay_of(delays: Delays, envelope: Envelope) -> str | None:
    """Return the reason why an execution cannot start yet, if there is one."""
    if not delays:
        return None
    found = delays.get(envelope.queue) or delays.get(envelope.job)
    if found is None and envelope.keys is not None:
        found = delays.get((envelope.job, keys_of(envelope.keys).circuit or ""))
    return found


def cause_of(run: LedgerRun, delay: str | None, waited: str | None) -> str:
    """Return the cause that the ledger records for a run of fires.

    `delay` is the reason why executions cannot run yet, and `waited` the quota for which the fires waited before they
    were decided. The delay also explains fires that are skipped because an earlier execution has not ended, since this
    execution may be delayed, too.
    """
    late = f"waited for room: {waited.rstrip('.')}" if waited else None
    if run.disposition == "fired" and (late or delay):
        return "; ".join(filter(None, (late, delay)))
    if run.disposition == "skipped-overlap" and delay:
        return f"{run.cause}; {delay}"
    if run.disposition in ("skipped-misfire", "coalesced") and late:
        return f"{run.cause}; {late}"
    return run.cause
