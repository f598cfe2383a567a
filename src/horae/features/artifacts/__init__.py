"""Artifacts: files and large results that executions leave behind, in a folder or a bucket."""

from horae.feature import Command, Feature, Routes

FEATURE = Feature(
    name="artifacts",
    about="Files and large results that executions leave behind.",
    tables="horae.features.artifacts.store.tables",
    holdings="horae.features.artifacts.store.artifacts:HOLDINGS",
    part="horae.features.artifacts.part:ArtifactsPart",
    routes=(Routes("horae.features.artifacts.routes", after="executions"),),
    commands=(Command("executions artifacts", "horae.features.artifacts.cli:artifacts"),),
)
