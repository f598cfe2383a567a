"""Delays: what keeps an execution from starting that a fire or an event has made, as the ledger tells it.

A queue that is held, a circuit that is not closed, a quota that had no room when the fire was due.
"""

from collections.abc import Mapping
from uuid import UUID

from horae.model.admission.keys import keys_of
from horae.model.executions.parcel import Envelope
from horae.model.triggers.decisions.decide import LedgerRun

Delays = Mapping[int | UUID | tuple[UUID, str], str]  # of queues, of jobs and of keys of their circuits, in words
NO_DELAYS: Delays = {}


def delay_of(delays: Delays, envelope: Envelope) -> str | None:
    """What an execution waits for, if anything delays it."""
    if not delays:
        return None
    found = delays.get(envelope.queue) or delays.get(envelope.job)
    if found is None and envelope.keys is not None:
        found = delays.get((envelope.job, keys_of(envelope.keys).circuit or ""))
    return found


def cause_of(run: LedgerRun, delay: str | None, waited: str | None) -> str:
    """The cause of a run of fires, with what delays their executions and what they waited for before they were decided.

    What is skipped for the execution before it may be so because that one is delayed.
    """
    late = f"waited for room: {waited.rstrip('.')}" if waited else None
    if run.disposition == "fired" and (late or delay):
        return "; ".join(filter(None, (late, delay)))
    if run.disposition == "skipped-overlap" and delay:
        return f"{run.cause}; {delay}"
    if run.disposition in ("skipped-misfire", "coalesced") and late:
        return f"{run.cause}; {late}"
    return run.cause
