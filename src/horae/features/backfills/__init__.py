"""Backfills: run the fires of a past range that did not run."""

from horae.feature import Command, Feature, Routes

FEATURE = Feature(
    name="backfills",
    about="Run the fires of a past range that did not run.",
    tables="horae.features.backfills.store.tables",
    holdings="horae.features.backfills.store.backfills:HOLDINGS",
    sweep="horae.features.backfills.store.backfills:sweep",
    part="horae.features.backfills.part:BackfillsPart",
    routes=(Routes("horae.features.backfills.routes", after="calendars"),),
    metrics="horae.features.backfills.metrics:BackfillMetrics",
    commands=(
        Command(
            "backfills",
            "horae.features.backfills.cli:backfills",
            "Run past fires that did not run.",
            section="Jobs",
            after="calendars",
        ),
    ),
)
