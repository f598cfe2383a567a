"""The archive: executions past their retention, stored as files in a folder or a bucket."""

from horae.feature import Feature, Routes

FEATURE = Feature(
    name="archive",
    about="Executions past their retention, stored as files.",
    uses=("artifacts",),
    needs=("artifacts",),
    tables="horae.features.archive.store.tables",
    holdings="horae.features.archive.store.archives:HOLDINGS",
    routes=(Routes("horae.features.archive.routes", after="executions"),),
    part="horae.features.archive.part:ArchivePart",
    metrics="horae.features.archive.metrics:ArchiveMetrics",
)
