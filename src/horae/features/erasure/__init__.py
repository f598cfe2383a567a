"""Erasure: remove the data of executions, persons or namespaces from the store, the files and the archive."""

from horae.feature import Command, Feature, Routes

FEATURE = Feature(
    name="erasure",
    about="Remove the data of executions, persons or namespaces.",
    uses=("archive",),
    part="horae.features.erasure.part:ErasurePart",
    routes=(Routes("horae.features.erasure.routes", after="executions"),),
    commands=(Command("executions erase", "horae.features.erasure.cli:erase"),),
)
