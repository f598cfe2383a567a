"""Statistics: what became of executions, added up by the minute, hour and day."""

from horae.feature import Feature

FEATURE = Feature(
    name="statistics",
    about="Outcomes of executions, added up by minute, hour and day.",
    part="horae.features.statistics.part:StatisticsPart",
)
