"""Logs of executions: this feature reads, follows and searches them. The kernel stores them."""

from horae.feature import Feature, Routes

FEATURE = Feature(
    name="logs",
    about="Read, follow and search what executions logged.",
    routes=(Routes("horae.features.logs.routes", after="executions"),),
    part="horae.features.logs.part:LogsPart",
)
