"""Audit of the ledger: it checks that each nominal fire that was decided is covered by exactly one row.

The nominal fires are computed again from the versions of triggers. The fires in a row that covers a range are counted
by whole days, so that the cost of an audit depends on the number of rows, not of fires.
"""

from collections import Counter
from typing import Literal
from uuid import UUID

import msgspec
from msgspec import Struct, field

from horae.env import SECOND, Instant, Micros
from horae.model.triggers.decisions.count import count_fires
from horae.model.triggers.decisions.coverage import CoverageCheck, FireSpan, Flaw, name_fires
from horae.model.triggers.decisions.decide import NONEXISTENT
from horae.model.triggers.decisions.values import Timed
from horae.model.triggers.ledger import TriggerVersion
from horae.store.script import Fetch, Row, Script, Statement
from horae.store.triggers import ledger, zone_rules
from horae.store.triggers.ledger import VERSIONS, StoredVersion, read_version
from horae.store.triggers.triggers import describe_error

PAGE = 1000
MAX_FINDINGS = 100  # findings in a report, and instants in all of them together
LATE: Micros = 300 * SECOND  # a fire that is still undecided so long after it was due is a finding
FIRST = UUID(int=0)

TRIGGERS = Statement("audit_triggers", f"{VERSIONS} WHERE g.id > $1 ORDER BY g.id LIMIT $2")
FIRES = Statement(
    "audit_fires",
    "SELECT first, last, disposition FROM fires WHERE trigger_id = $1 AND last > $2 ORDER BY last LIMIT $3",
)

Kind = Literal["uncovered", "duplicate", "unexpected", "undecidable"]


class FireFinding(Struct, frozen=True):
    """A range of nominal fires that the ledger covers wrongly.

    The kinds: `uncovered` by any row; `duplicate`, covered by two rows; `unexpected`, in a row although the trigger has
    no such fires; `undecidable`, because the fires of the trigger cannot be computed.
    """

    kind: Kind
    trigger: UUID
    first: Instant
    last: Instant
    name: str = ""  # of the trigger
    fires: int = 0  # the number of fires in the range; filled only by `audit_job`
    instants: list[Instant] = []  # the first of these fires; filled only by `audit_job`
    detail: str = ""  # the error, if the trigger is undecidable


class FireReport(Struct):
    """The result of an audit."""

    triggers: int = 0  # versions of triggers that were checked
    rows: int = 0  # rows of the ledger that were checked
    dispositions: Counter[str] = field(default_factory=Counter)  # the number of fires by disposition
    undecided: int = 0  # due fires that no server has decided yet, for example while a trigger is paused
    known_from: Instant = 0  # earlier fires were not checked
    findings: list[FireFinding] = []
    unnamed: int = 0  # fires of findings that are not in `instants`
    zones: list[tuple[str, Instant]] = []  # earlier versions of the time zone rules, each with the end of its use

    @property
    def fires(self) -> int:
        return sum(self.dispositions.values())


def audit_fires(known_from: Instant = 0) -> Script[FireReport]:
    """Audit the ledger of every trigger, without fires before `known_from` or before the oldest fires in the ledger."""
    known_from = max(known_from, (yield from ledger.known_from()))
    report = FireReport(known_from=known_from)
    after = FIRST
    while rows := (yield Fetch(TRIGGERS, (after, PAGE))):
        for row in rows:
            found = yield from _audit_row(row, known_from, None, report)
            report.findings += found[: MAX_FINDINGS - len(report.findings)]
        after = rows[-1][0]
    return report


def audit_job(job: UUID, trigger: str | None, since: Instant, until: Instant, now: Instant) -> Script[FireReport]:
    """Audit a job's fires from `since` to before `until`, and list the first instants of wrong ranges.

    Fires from before the oldest fires in the ledger are not checked. `trigger` is the name of a trigger, or None for
    all triggers of the job.
    """
    known_from = yield from ledger.known_from()
    report = FireReport(known_from=known_from)
    rows = [row for row in (yield Fetch(ledger.OF_JOB, (job,))) if trigger in (None, row[1])]
    if any(_is_zoned(row) for row in rows):
        report.zones = [past for past in (yield from zone_rules.earlier_versions()) if past[1] > max(since, known_from)]
    for row in rows:
        span = FireSpan(max(since, known_from), until - 1)
        for finding in (yield from _audit_row(row, span.first, (span, now), report)):
            _name(report, row, finding)
    return report


def _is_zoned(row: Row) -> bool:
    return '"timezone"' in row[2]  # a definition in UTC has no such field


def _audit_row(
    row: Row, since: Instant, within: tuple[FireSpan, Instant] | None, report: FireReport
) -> Script[list[FireFinding]]:
    """Return the findings in the ledger of one version of a trigger, from `since` on.

    `within` is a span and the current time: then the audit stops at the end of the span, and also expects due fires
    that no server has decided yet. Without `within` it stops at the last decided fire.
    """
    try:
        found = read_version(row)
        if not isinstance(found.version.trigger, Timed):
            return []
        if within is None:
            return (yield from _audit_version(found.version, since, found.version.through, report))
        span, now = within
        return (yield from _audit_version(found.version, since, _expected(found, span, now, report), report))
    except Exception as error:
        last = row[8] or row[6] or row[5]
        return [FireFinding("undecidable", row[0], row[5], last, row[1], detail=describe_error(error))]


def _expected(found: StoredVersion, span: FireSpan, now: Instant, report: FireReport) -> Instant:
    """Return the instant up to which the ledger must cover fires; add the undecided fires after it to `report`."""
    version, through = found.version, min(found.version.through, span.last)
    if not found.live or found.spent or through == span.last:
        return through
    if found.next_fire_at is not None:
        through = max(through, min(span.last, now - LATE - version.rules.offset))
    after, before = max(through, span.first - 1), min(span.last, now) + 1
    report.undecided += count_fires(version.trigger, version.rules, after, before)
    return through


def _audit_version(
    version: TriggerVersion, since: Instant, until: Instant, report: FireReport
) -> Script[list[FireFinding]]:
    """Read a version's rows that overlap [since, until] and check their coverage."""
    report.triggers += 1
    coverage = CoverageCheck(version.trigger, version.rules, version.after, since, until)
    last = since - 1
    while rows := (yield Fetch(FIRES, (version.id, last, PAGE))):
        inside = [row for row in rows if row[0] <= until]
        report.rows += len(inside)
        for first, last, disposition in inside:
            if disposition == NONEXISTENT:
                coverage.add_lost(last)
            else:
                coverage.add(first, last)
            report.dispositions[disposition] += _count(version, max(first, since), min(last, until))
        last = rows[-1][1]
        if last > until:
            break
    return [_finding(version, flaw) for flaw in coverage.finish()]


def _count(version: TriggerVersion, first: Instant, last: Instant) -> int:
    return 1 if first == last else count_fires(version.trigger, version.rules, first - 1, last + 1)


def _finding(version: TriggerVersion, flaw: Flaw) -> FireFinding:
    return FireFinding(flaw.kind, version.id, flaw.span.first, flaw.span.last, version.name)


def _name(report: FireReport, row: Row, finding: FireFinding) -> None:
    """Add a finding with its first instants to the report, as long as the report has room."""
    room = MAX_FINDINGS - sum(max(1, len(found.instants)) for found in report.findings)
    if finding.kind == "undecidable":
        report.findings.append(finding)
        return
    version = read_version(row).version
    span = FireSpan(finding.first, finding.last)
    instants, fires = name_fires(version.trigger, version.rules, span, max(0, room))
    if not fires:  # an unexpected fire, or one that a clock change removed
        instants, fires = [finding.first][:room], 1
    report.unnamed += max(0, fires - len(instants))
    if instants:
        report.findings.append(msgspec.structs.replace(finding, fires=fires, instants=instants))
