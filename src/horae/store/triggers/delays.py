"""Delays: reasons why executions started by fires or events cannot run yet, written to the ledger.

A reason is a queue with a hold, a circuit that is not closed, or a quota that had no room when the fire was due.
"""

from collections.abc import Mapping
from uuid import UUID

from horae.model.admission.keys import keys_of
from horae.model.executions.parcel import Envelope
from horae.model.triggers.decisions.decide import LedgerRun

Delays = Mapping[int | UUID | tuple[UUID, str], str]  # (queue, job, or job and circuit key) -> reason as text
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
    """Return the cause of a run of fires for the ledger, with the delay of its executions and the earlier wait for
    room.

    A fire that is skipped because an earlier execution has not ended may be skipped because that execution is delayed.
    """
    late = f"waited for room: {waited.rstrip('.')}" if waited else None
    if run.disposition == "fired" and (late or delay):
        return "; ".join(filter(None, (late, delay)))
    if run.disposition == "skipped-overlap" and delay:
        return f"{run.cause}; {delay}"
    if run.disposition in ("skipped-misfire", "coalesced") and late:
        return f"{run.cause}; {late}"
    return run.cause
