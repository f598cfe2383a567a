"""The archive: executions past their retention, kept as files in a folder or a bucket."""

from horae.feature import Feature

FEATURE = Feature(
    name="archive",
    about="Executions past their retention, kept as files.",
    part="horae.features.archive.part:ArchivePart",
)
