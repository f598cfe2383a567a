"""Logs of executions: reading, following and searching them. The kernel writes them."""

from horae.feature import Feature, Routes

FEATURE = Feature(
    name="logs",
    about="Read, follow and search what executions logged.",
    routes=(Routes("horae.features.logs.routes", after="executions"),),
    part="horae.features.logs.part:LogsPart",
)
