"""The archive: executions that are not kept any more, in files beside the artifacts."""

from horae.engine.archive.archiver import Archiver
from horae.engine.archive.reader import ArchiveReader

__all__ = ("ArchiveReader", "Archiver")
