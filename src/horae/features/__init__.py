"""Features: one folder each, with all its layers. `INSTALLED` names them, each after those that it uses."""

from horae.feature import Feature
from horae.features.alerts import FEATURE as ALERTS
from horae.features.archive import FEATURE as ARCHIVE
from horae.features.artifacts import FEATURE as ARTIFACTS
from horae.features.audit_log import FEATURE as AUDIT_LOG
from horae.features.backfills import FEATURE as BACKFILLS
from horae.features.dead_letters import FEATURE as DEAD_LETTERS
from horae.features.erasure import FEATURE as ERASURE
from horae.features.events import FEATURE as EVENTS
from horae.features.logs import FEATURE as LOGS
from horae.features.rollouts import FEATURE as ROLLOUTS
from horae.features.statistics import FEATURE as STATISTICS
from horae.features.templates import FEATURE as TEMPLATES
from horae.features.tracing import FEATURE as TRACING
from horae.features.users import FEATURE as USERS

INSTALLED: tuple[Feature, ...] = (
    AUDIT_LOG,
    USERS,
    STATISTICS,
    LOGS,
    TRACING,
    ARTIFACTS,
    ARCHIVE,
    EVENTS,
    BACKFILLS,
    DEAD_LETTERS,
    ERASURE,
    ROLLOUTS,
    TEMPLATES,
    ALERTS,
)
