"""Triggers as the API spells them: a cron string or an object such as {"every": "5m"}, {"at": "..."}, {"event": "..."}.

Each kind is identified by a field that only this kind has: the field with `tells` in the kind's table.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from horae.env import Instant
from horae.errors import BadInput
from horae.model.fields.table import JoinedRows, Table
from horae.model.fields.values import refuse_unknown
from horae.model.triggers.decisions.external import WatchTrigger
from horae.model.triggers.decisions.fields import ACCEPTED
from horae.model.triggers.decisions.named_trigger import NAMED_TRIGGER
from horae.model.triggers.decisions.params import check_fire_params
from horae.model.triggers.decisions.rules import RULES, Overlap
from horae.model.triggers.decisions.values import TIMED, TRIGGERS, Cron, Trigger
from horae.model.triggers.events.filters import check_params

OTHER_FIELDS = tuple(
    name for name in NAMED_TRIGGER.names if name != "name"
)  # fields of a trigger other than its definition and its rules
EVENT_RULES = RULES.where(lambda field: not field.no_event)


@dataclass(frozen=True, kw_only=True)
class TriggerKind:
    """One kind of trigger: its name, the field that identifies it, its struct, and the table of its fields."""

    name: str
    field: str
    struct: type[Trigger]
    table: Table

    @cached_property
    def is_timed(self) -> bool:
        """True if the kind has nominal instants; external triggers have none."""
        return self.struct in TIMED

    @property
    def overlap(self) -> Overlap:
        """The default overlap policy. Events are independent of each other, so external triggers allow overlap."""
        return "skip" if self.is_timed else "allow"

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All fields of a trigger of this kind, including the rules that apply to it."""
        return (*self.table.names, *(RULES.names if self.is_timed else EVENT_RULES), *OTHER_FIELDS)

    @property
    def check_params(self) -> Callable[[dict[str, Any], str], None]:
        """The function that checks the templates in its params, and refuses those that no fire could render."""
        return check_fire_params if self.is_timed else check_params

    def read(self, value: dict[str, Any], key: str, created_at: Instant) -> Trigger:
        """Parse the fields of this kind, or refuse them with the reason and a remedy."""
        span = _span_of(value.get("cron"))
        if span is not None:
            refuse_unknown(value, ("cron",), "This schedule", "schedule.")
            return KINDS["every"].read({"every": span}, key, created_at)
        for row in self.table.rows:
            if row.name in value and value[row.name] is None and row.default is not None and not row.field.null:
                row.kind.read(None, f"schedule.{row.name}")
        return self.struct.from_fields(self.table.read(value, "schedule."), key, created_at)


TABLES = {struct: Table(struct, "This schedule") for struct in TRIGGERS}
KINDS: dict[str, TriggerKind] = {
    row.name: TriggerKind(name=row.field.tells, field=row.name, struct=struct, table=table)
    for struct, table in TABLES.items()
    for row in table.rows
    if row.field.tells
}
KIND_NAMES = tuple(kind.name for kind in KINDS.values())
TIMES = JoinedRows((TABLES[struct] for struct in TIMED), "This schedule")
FIELDS = JoinedRows((*TABLES.values(), RULES, NAMED_TRIGGER), "This schedule")  # all fields of triggers of any kind


def as_object(value: Any) -> dict[str, Any]:
    """Return the definition of a trigger as an object: a string is a cron expression."""
    if isinstance(value, str):
        return {"cron": value}
    if not isinstance(value, dict):
        raise BadInput("A schedule is a text or an object.", ACCEPTED, field="schedule")
    return value


def _span_of(cron: Any) -> str | None:
    """Return the span of the macro `@every 5m`, which is written in place of a cron expression."""
    macro, _, span = " ".join(cron.split()).partition(" ") if isinstance(cron, str) else ("", "", "")
    return span if macro.lower() == "@every" else None


def kind_of(value: dict[str, Any]) -> TriggerKind:
    """Return the kind of a trigger by its one identifying field; `webhook` may accompany `event`."""
    kinds = [kind for kind in KINDS if kind in value and not (kind == "webhook" and "event" in value)]
    if len(kinds) > 1:
        listed = f"{', '.join(kinds[:-1])} and {kinds[-1]}"
        raise BadInput(f"A schedule has only one of {listed}.", ACCEPTED, field="schedule")
    if not kinds:
        refuse_unknown(value, [name for name in FIELDS.names if name != "name"], "This schedule", "schedule.")
        raise BadInput(f"A schedule needs {either(tuple(KINDS))}.", ACCEPTED, field="schedule")
    return KINDS[kinds[0]]


def either(words: Sequence[str]) -> str:
    """Join words with "or"."""
    return f"{', '.join(words[:-1])} or {words[-1]}"


def render_schedule(trigger: Trigger) -> str | dict[str, Any]:
    """Format a trigger as a user would write it. One that has only a cron expression becomes a string."""
    table = TABLES[type(trigger)]
    shown = table.write(trigger) if isinstance(trigger, WatchTrigger) else table.write_changed(trigger)
    shown = {name: part for name, part in shown.items() if part is not None}
    return trigger.expression if isinstance(trigger, Cron) and len(shown) == 1 else shown
