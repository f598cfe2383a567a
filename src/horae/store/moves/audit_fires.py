"""Audit of the ledger: every nominal fire that a trigger has decided is covered by exactly one row."""

from collections.abc import Sequence
from typing import Literal
from uuid import UUID

import msgspec
from msgspec import Struct

from horae.env import Instant
from horae.model.trigger import Rules, Trigger, latest, upcoming
from horae.store.script import Fetch, Row, Script, Statement

PAGE = 1000
MOST = 100  # findings that are named
FIRST = UUID(int=0)

TRIGGERS = Statement(
    "audit_triggers",
    "SELECT g.id, g.definition, g.rules, g.valid_from, coalesce(t.decided_through, g.valid_to) FROM triggers g"
    " LEFT JOIN timers t ON t.trigger_id = g.id WHERE g.id > $1 ORDER BY g.id LIMIT $2",
)
FIRES = Statement(
    "audit_fires",
    "SELECT first, last, disposition, execution FROM fires WHERE trigger_id = $1 AND last > $2 ORDER BY last LIMIT $3",
)


class FireFinding(Struct, frozen=True):
    """Nominal fires from `first` to `last` that no row covers, that two cover, that a row names in vain, or that a
    trigger which cannot be decided leaves unknown.
    """

    kind: Literal["uncovered", "doubled", "invented", "undecidable"]
    trigger: UUID
    first: Instant
    last: Instant


class FireReport(Struct):
    """How many triggers and rows were looked at, and what is wrong."""

    triggers: int = 0
    rows: int = 0
    findings: list[FireFinding] = []


def audit_fires(known_from: Instant = 0) -> Script[FireReport]:
    """Audit every trigger's ledger; nothing is expected of fires before `known_from`, where retention may have cut."""
    report = FireReport()
    after = FIRST
    while rows := (yield Fetch(TRIGGERS, (after, PAGE))):
        for row in rows:
            try:
                yield from _audit_trigger(row, known_from, report)
            except Exception:
                _find(report, [FireFinding("undecidable", row[0], row[3], row[4] or row[3])])
        after = rows[-1][0]
    return report


def _audit_trigger(row: Row, known_from: Instant, report: FireReport) -> Script[None]:
    id, trigger, rules = row[0], msgspec.json.decode(row[1], type=Trigger), msgspec.json.decode(row[2], type=Rules)
    report.triggers += 1
    through = max(row[3], known_from - 1)
    last = known_from - 1
    while runs := (yield Fetch(FIRES, (id, last, PAGE))):
        report.rows += len(runs)
        for first, last, *_ in runs:
            _find(report, check_run(id, trigger, rules, through, first, last))
            through = max(through, last)
    decided = row[4]
    if decided is not None and decided > through:
        _find(report, _uncovered(id, trigger, rules, through, decided + 1))


def _find(report: FireReport, findings: Sequence[FireFinding]) -> None:
    report.findings += findings[: MOST - len(report.findings)]


def check_run(
    id: UUID, trigger: Trigger, rules: Rules, through: Instant, first: Instant, last: Instant
) -> list[FireFinding]:
    """Whether a row begins with the fire that follows what was covered `through` an instant, and ends with a fire."""
    if first <= through:
        return [FireFinding("doubled", id, first, min(last, through))]
    findings = _uncovered(id, trigger, rules, through, first)
    if upcoming(trigger, rules, first - 1) != first or latest(trigger, rules, last + 1) != last:
        findings.append(FireFinding("invented", id, first, last))
    return findings


def _uncovered(id: UUID, trigger: Trigger, rules: Rules, after: Instant, before: Instant) -> list[FireFinding]:
    """The run of nominal fires strictly between two instants, if there is any."""
    first = upcoming(trigger, rules, after)
    if first is None or first >= before:
        return []
    return [FireFinding("uncovered", id, first, latest(trigger, rules, before) or first)]
