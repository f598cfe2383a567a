"""Logs of executions: reading, following and searching them. Writing them is the kernel's."""

from horae.feature import Feature, Routes

FEATURE = Feature(
    name="logs",
    about="Read, follow and search what executions logged.",
    routes=(Routes("horae.features.logs.routes", after="executions"),),
    part="horae.features.logs.part:LogsPart",
)
