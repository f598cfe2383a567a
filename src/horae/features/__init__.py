"""Features: one folder each, with all its layers. `INSTALLED` lists them, each after the features that it uses."""

from horae.feature import Feature, load

NAMES = (
    "audit_log",
    "users",
    "statistics",
    "logs",
    "tracing",
    "artifacts",
    "archive",
    "events",
    "backfills",
    "dead_letters",
    "erasure",
    "rollouts",
    "templates",
    "alerts",
)
INSTALLED: tuple[Feature, ...] = tuple(load(f"horae.features.{name}:FEATURE") for name in NAMES)
