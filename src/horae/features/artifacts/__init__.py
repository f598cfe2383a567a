"""Artifacts: files and large results that executions leave behind, in a folder or a bucket."""

from horae.feature import Feature

FEATURE = Feature(
    name="artifacts",
    about="Files and large results that executions leave behind.",
    part="horae.features.artifacts.part:ArtifactsPart",
)
