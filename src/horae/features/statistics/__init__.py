"""Statistics: numbers and durations of executions by outcome, added up by minute, hour and day."""

from horae.feature import Command, Feature, Routes

FEATURE = Feature(
    name="statistics",
    about="Outcomes of executions, added up by minute, hour and day.",
    tables="horae.features.statistics.store.tables",
    holdings="horae.features.statistics.store.statistics:HOLDINGS",
    sweep="horae.features.statistics.store.statistics:sweep",
    ended_counts="horae.features.statistics.engine.job_statistics:ended_counts",
    part="horae.features.statistics.part:StatisticsPart",
    routes=(Routes("horae.features.statistics.routes", after="jobs"),),
    commands=(
        Command(
            "overview",
            "horae.features.statistics.cli:overview",
            "Show current and recent executions of a namespace.",
            section="Operate",
            after="sign-in",
        ),
        Command("jobs stats", "horae.features.statistics.cli:stats"),
    ),
)
