"""Events from outside: sent by request or webhook, or detected in watched folders and buckets."""

from horae.feature import Command, Feature, Routes

FEATURE = Feature(
    name="events",
    about="Start jobs by requests, webhooks and files in watched places.",
    tables="horae.features.events.store.tables",
    holdings="horae.features.events.store.event_sweep:HOLDINGS",
    sweep="horae.features.events.store.event_sweep:sweep",
    part="horae.features.events.part:EventsPart",
    routes=(
        Routes("horae.features.events.routes", after="circuits"),
        Routes("horae.features.events.hook_routes", after="circuits"),
    ),
    sealed="horae.features.events.engine.hook_secrets:HookSecrets",
    check_place="horae.features.events.part:check_place",
    metrics="horae.features.events.metrics:EventMetrics",
    pages=("events",),
    commands=(
        Command(
            "events",
            "horae.features.events.cli:events",
            "Send and list events; create webhooks.",
            section="Jobs",
            after="explain",
        ),
    ),
)
