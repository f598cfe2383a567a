"""The audit log: who changed what, in a chain of rows that shows tampering. It cannot be switched off."""

from horae.feature import Feature

FEATURE = Feature(
    name="audit_log",
    about="Who changed what, in a chain of rows that shows tampering.",
    required=True,
    part="horae.features.audit_log.part:AuditLogPart",
)
