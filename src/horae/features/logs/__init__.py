"""Logs of executions: reading, following and searching them. Writing them is the kernel's."""

from horae.feature import Feature

FEATURE = Feature(
    name="logs",
    about="Read, follow and search what executions logged.",
    part="horae.features.logs.part:LogsPart",
)
