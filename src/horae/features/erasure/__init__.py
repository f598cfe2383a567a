"""Erasure: remove the data of one execution or person from store, files and archive."""

from horae.feature import Command, Feature, Routes

FEATURE = Feature(
    name="erasure",
    about="Remove the data of one execution, person or namespace.",
    uses=("archive",),
    part="horae.features.erasure.part:ErasurePart",
    routes=(
        Routes("horae.features.erasure.routes", after="executions"),
        Routes("horae.features.erasure.namespace_routes", after="namespaces"),
    ),
    commands=(Command("executions erase", "horae.features.erasure.cli:erase"),),
)
