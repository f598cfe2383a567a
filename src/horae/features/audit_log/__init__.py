"""The audit log: all changes with their authors, in a chain of rows that shows tampering.

It cannot be switched off.
"""

from horae.feature import Command, Feature, Routes

FEATURE = Feature(
    name="audit_log",
    about="All changes with their authors, in a chain of rows that shows tampering.",
    tables="horae.features.audit_log.store.tables",
    holdings="horae.features.audit_log.store.log:HOLDINGS",
    required=True,
    audit="horae.features.audit_log.engine:AuditLog",
    part="horae.features.audit_log.part:AuditLogPart",
    routes=(Routes("horae.features.audit_log.routes", after="installation"),),
    commands=(Command("audit log", "horae.features.audit_log.cli:log"),),
)
