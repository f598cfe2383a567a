"""Convert the filter of dead letters in a request, first to a LetterFilter and then to a filter of executions."""

from typing import TypedDict

from horae.engine.base.refs import find_job, time_bound
from horae.engine.executions.executions import TimeBound
from horae.env import Env, Instant
from horae.errors import BadInput
from horae.features.dead_letters.model import LetterFilter
from horae.model.base.duration import parse_duration
from horae.model.base.ids import first_id_at
from horae.model.executions.execution import FAILED
from horae.model.fields.values import a_text
from horae.store.contract import Store
from horae.store.executions.leaving import dead_letters as moves
from horae.store.executions.reads.execution_lists import END, FIRST, ExecutionFilter, Place

MARK_OF_STATE = {"open": "", "retried": moves.RETRIED, "discarded": moves.DISCARDED, "all": None}


class LetterFilterFields(TypedDict, total=False):
    """A filter as it is in requests; `since`, `until` and `older_than` refer to the creation of the executions."""

    job: str | None
    queue: str | None
    error_type: str | None
    reason: str | None
    text: str | None
    since: TimeBound
    until: TimeBound
    older_than: str | None


async def read_filter(env: Env, store: Store, namespace: int, which: LetterFilterFields) -> LetterFilter:
    """Convert the filter of a request. Raises NotFound for an unknown job, and BadInput for an invalid time."""
    job = which.get("job")
    until = time_bound(which.get("until"), "until")
    older = which.get("older_than")
    if older is not None:
        until = min(env.now() - parse_duration(older, field="olderThan"), env.now() if until is None else until)
    return LetterFilter(
        job=None if job is None else (await find_job(store, namespace, job)).job.id,
        queue=which.get("queue"),
        error_type=which.get("error_type"),
        reason=which.get("reason"),
        text=a_text(which.get("text") or "", "text", most=256) or None,
        since=time_bound(which.get("since"), "since"),
        until=until,
    )


def filter_of(letters: LetterFilter, state: str = "open") -> ExecutionFilter:
    """Return a filter that matches the executions of dead letters; `state` is open, retried, discarded or all."""
    if state not in MARK_OF_STATE:
        detail = f"{state[:40]!r} is not a state of dead letters."
        raise BadInput(detail, f"Choose one of: {', '.join(MARK_OF_STATE)}.", field="state")
    return ExecutionFilter(
        states=frozenset({FAILED}),
        job=letters.job,
        queue=letters.queue,
        error_type=letters.error_type,
        reason=letters.reason,
        text=letters.text,
        low=FIRST if letters.since is None else first_id_at(letters.since),
        mark=MARK_OF_STATE[state],
        without_steps=True,
    )


def place_of(until: Instant | None) -> Place:
    """Return the place where a newest-first list of the executions created before an instant begins."""
    return END if until is None else (first_id_at(max(0, until)), 0)
