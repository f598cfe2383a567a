"""Metrics of the executions that this server archived, and of its failures."""

from collections.abc import Iterator

from prometheus_client import Metric

from horae.features.archive.part import ArchivePart
from horae.server.metrics.families import FeatureMetrics, counter, gauge


class ArchiveMetrics(FeatureMetrics):
    """The metrics of the archive."""

    def collect(self) -> Iterator[Metric]:
        archiver = self.node.part(ArchivePart).archiver
        about = "Executions that this server wrote to the archive."
        yield counter("archived_executions", about, archiver.archived)
        about = "Files of the archive that this server could not write; their executions are not deleted."
        yield counter("archive_failures", about, archiver.failures)
        about = "1 while this server cannot archive some or all executions and tries again; see horae doctor."
        yield gauge("archive_failing", about, archiver.is_failing)
