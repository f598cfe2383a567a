"""The audit of all executions at once; servers audit them page by page."""

from uuid import UUID

from horae.env import Instant, Micros
from horae.store.executions.reads.audit import FIRST, PATIENCE, AuditReport, audit_page
from horae.store.script import Script


def audit_executions(now: Instant, patience: Micros | None = PATIENCE) -> Script[AuditReport]:
    """Audit all parcels in one transaction; with `patience` None, delays are not findings."""
    report = AuditReport()
    after: UUID | None = FIRST
    while after is not None:
        page, after = yield from audit_page(after, now, patience)
        report.add(page)
    return report
