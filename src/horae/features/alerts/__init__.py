"""Alerts: rules that watch jobs, queues and workers, and channels that notify people.

A service evaluates the rules. If the condition of a rule holds for a job, queue or worker, the service opens an alert.
Notices about the alert are delivered through the rule's channels: by e-mail, webhook or chat.
"""

from horae.feature import Command, Feature, Routes

FEATURE = Feature(
    name="alerts",
    about="Rules that watch jobs, queues and workers, and channels that notify people.",
    uses=("statistics",),
    tables="horae.features.alerts.store.tables",
    holdings="horae.features.alerts.store.alerts:HOLDINGS",
    part="horae.features.alerts.part:AlertsPart",
    routes=(Routes("horae.features.alerts.routes", after="circuits"),),
    secrets="horae.features.alerts.engine.channels:keep_secret",
    sealed="horae.features.alerts.engine.channels:AlertChannels",
    metrics="horae.features.alerts.metrics:AlertMetrics",
    pages=("alerts",),
    topics=(("alerts", "alert"),),
    commands=(
        Command(
            "alerts",
            "horae.features.alerts.cli:alerts",
            "Show and acknowledge alerts; write rules and channels.",
            section="Operate",
        ),
    ),
)
