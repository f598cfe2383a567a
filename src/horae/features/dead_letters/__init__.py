"""Dead letters: executions that failed for good, and can be listed in groups, retried, replayed or discarded."""

from horae.feature import Command, Feature, Routes

FEATURE = Feature(
    name="dead_letters",
    about="Executions that failed for good, listed in groups, retried, replayed or discarded.",
    tables="horae.features.dead_letters.store.tables",
    holdings="horae.features.dead_letters.store.replays:HOLDINGS",
    sweep="horae.features.dead_letters.store.replays:sweep",
    part="horae.features.dead_letters.part:DeadLettersPart",
    routes=(Routes("horae.features.dead_letters.routes", after="workflows"),),
    metrics="horae.features.dead_letters.metrics:ReplayMetrics",
    pages=("dead-letters",),
    commands=(
        Command(
            "dlq",
            "horae.features.dead_letters.cli:dlq",
            "List dead letters; retry, replay or discard them.",
            section="Jobs",
            after="explain",
        ),
    ),
)
