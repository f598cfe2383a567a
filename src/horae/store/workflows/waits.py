"""Waits of workflow steps for signals, callbacks, events and approvals.

A wait is stored when a step begins to wait, and deleted when the wait is over. If a signal has arrived before the step
begins to wait for it, the step receives it at once. The transaction that stores an event also adds a row to `flow_news`
for each step that waits for an event of this name; it does not lock the workflows. Later, the transaction that advances
due workflows checks whether these events end the waits.
"""

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

import msgspec

from horae.env import Instant
from horae.model.workflows.decisions.waits import KINDS, name_of, passes
from horae.model.workflows.decisions.workflow import FINAL, StepEnd, StepWait
from horae.model.workflows.waits import Approval, Sleep, Wait
from horae.store.base.deferred import Change, Deferred
from horae.store.base.shelves import ITEM, Columns
from horae.store.executions.durable.awaits import TAKE, kept_of
from horae.store.executions.state_changes import StepChange
from horae.store.script import Fetch, ForEach, Insert, Script, Statement
from horae.store.triggers.dependencies.starts import Consequences
from horae.store.workflows.workflow_run import WorkflowRun

STEP: Columns = (*ITEM, ("step", "text"))
WAITS: Columns = (
    *STEP, ("namespace", "int"), ("kind", "text"), ("name", "text"), ("wait", "text"), ("remind_at", "bigint"),
    ("at", "bigint"),
)  # fmt: skip
NEWS: Columns = (*STEP, ("event", "uuid"), ("told", "bytea"), ("at", "bigint"))
DROP = Statement(
    "drop_workflow_waits",
    "DELETE FROM flow_waits USING given WHERE flow_waits.parcel = given.parcel AND flow_waits.item = given.item"
    " AND flow_waits.step = given.step",
)
DROP_NEWS = Statement(
    "drop_workflow_news",
    "DELETE FROM flow_news USING given WHERE flow_news.parcel = given.parcel AND flow_news.item = given.item"
    " AND flow_news.step = given.step",
)
LISTENING = Statement(
    "steps_listening",
    "SELECT w.parcel, w.item, w.step, given.name FROM given JOIN flow_waits w ON w.namespace = given.namespace"
    " AND w.name = given.name AND w.kind = 'event'",
)
OF_WORKFLOW = Statement(
    "waits_of_workflow",
    "SELECT w.step, w.kind, w.name, w.wait FROM flow_waits w WHERE w.parcel = $1 AND w.item = $2 ORDER BY w.at, w.step",
)
WORKFLOWS_WITH_NEWS = Statement(
    "workflows_with_news",
    "SELECT DISTINCT f.execution FROM flow_news n JOIN flows f ON f.parcel = n.parcel AND f.item = n.item LIMIT $1",
)
NEWS_OF = Statement(
    "news_of_workflow",
    "SELECT n.at, n.event, n.step, n.told FROM flow_news n WHERE n.parcel = $1 AND n.item = $2",
)
REMIND = Statement(
    "reminders_due",
    "SELECT w.parcel, w.item, w.step, w.wait, f.execution, f.job, f.namespace FROM flow_waits w"
    " JOIN flows f ON f.parcel = w.parcel AND f.item = w.item WHERE w.remind_at <= $1 ORDER BY w.remind_at LIMIT $2",
)
REMINDED = Statement(
    "set_reminders",
    "UPDATE flow_waits SET remind_at = given.remind_at FROM given WHERE flow_waits.parcel = given.parcel"
    " AND flow_waits.item = given.item AND flow_waits.step = given.step",
)
_read_wait = msgspec.json.Decoder(Wait).decode


def begin_waits(
    run: WorkflowRun, awaits: Sequence[StepWait], deferred: Deferred, now: Instant
) -> Script[list[StepEnd]]:
    """Store the waits of steps; return the steps that end at once because their signal has arrived already.

    A `Sleep` has no row of its own: it is over at the `wake_at` of the step's row.
    """
    place, rows, ended = run.stored.place, [], list[StepEnd]()
    for one in awaits:
        if isinstance(one.wait, Sleep):
            continue
        kind, name = KINDS[type(one.wait)], name_of(one.step, one.wait)
        kept = (yield from kept_of(*place, name)) if kind in ("signal", "callback") else []
        if kept:
            yield Fetch(TAKE, (*place, kept[0].id, one.step))
            ended.append(StepEnd(step=one.step, result=kept[0].payload))
            continue
        wait = msgspec.json.encode(one.wait).decode()
        rows.append((*place, one.step, run.stored.namespace, kind, name, wait, one.remind_at, now))
    if rows:
        deferred.add([Insert("flow_waits", WAITS, rows)])
    return ended


def drop_ended(run: WorkflowRun) -> list[Change]:
    """Return the changes that delete the waits of steps that have ended."""
    over = [
        (*run.stored.place, step)
        for step, state in run.new_states.items()
        if state in FINAL and step in run.plan.nodes and _leaves_a_row(run, step)
    ]
    return [ForEach(DROP, STEP, over), ForEach(DROP_NEWS, STEP, over)] if over else []


def _leaves_a_row(run: WorkflowRun, step: str) -> bool:
    wait = run.plan.nodes[step].step.wait
    return wait is not None and not isinstance(wait, Sleep)


def waits_of(place: tuple[UUID, int]) -> Script[list[tuple[str, str, str, Wait]]]:
    """Return the waits of a workflow's steps, oldest first: step, kind, name and wait."""
    rows = yield Fetch(OF_WORKFLOW, place)
    return [(step, kind, name, _read_wait(wait)) for step, kind, name, wait in rows]


def record_events(
    namespace: int, events: Iterable[tuple[UUID, str, dict[str, Any]]], now: Instant
) -> Script[bool]:  # fmt: skip
    """Store events for the steps that wait for an event of the same name; return whether there are such steps."""
    named: dict[str, list[tuple[UUID, dict[str, Any]]]] = {}
    for event, name, payload in events:
        named.setdefault(name, []).append((event, payload))
    given = [(namespace, name) for name in sorted(named)]
    found = yield ForEach(LISTENING, (("namespace", "int"), ("name", "text")), given)
    rows = [
        (parcel, item, step, event, msgspec.json.encode(payload), now)
        for parcel, item, step, name in found
        for event, payload in named[name]
    ]
    if rows:
        yield Insert("flow_news", NEWS, rows, conflict="ON CONFLICT DO NOTHING")
    return bool(rows)


def workflows_with_events(limit: int) -> Script[list[UUID]]:
    """Return up to `limit` workflows that have stored events which have not been checked yet."""
    return [row[0] for row in (yield Fetch(WORKFLOWS_WITH_NEWS, (limit,)))]


def ended_by_events(run: WorkflowRun, deferred: Deferred) -> Script[list[StepEnd]]:
    """Check the events that are stored for a workflow, and delete them; return the steps whose waits they end.

    A step receives the oldest event that passes its filter.
    """
    place = run.stored.place
    rows = sorted((yield Fetch(NEWS_OF, place)), key=lambda row: row[:2])
    ended: dict[str, StepEnd] = {}
    for _, _, step, payload in rows:
        node = run.plan.nodes.get(step)
        if node is None or step in ended:
            continue
        event = msgspec.json.decode(payload)
        if (yield from run.ask(passes(node, run.stored.about, event), deferred)):
            ended[step] = StepEnd(step=step, result=payload)
    yield ForEach(DROP_NEWS, STEP, sorted({(*place, row[2]) for row in rows}))
    return list(ended.values())


def remind(limit: int, now: Instant, consequences: Consequences) -> Script[None]:
    """Send the reminders of open approvals that are due.

    The reminder is an event that says again that the step is waiting. Also set the time of the next reminder.
    """
    rows = yield Fetch(REMIND, (now, limit))
    again = []
    for parcel, item, step, wait, execution, job, namespace in rows:
        approval = _read_wait(wait)
        span = approval.remind if isinstance(approval, Approval) else None
        again.append((parcel, item, step, None if span is None else now + span))
        consequences.stepped.append(StepChange(execution, job, namespace, step, "waiting"))
    if again:
        yield ForEach(REMINDED, (*STEP, ("remind_at", "bigint")), sorted(again))
