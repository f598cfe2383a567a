"""Artifacts: files of executions, in a folder or an object store."""

from horae.engine.artifacts.keeper import Artifacts
from horae.engine.artifacts.place import place_at
from horae.engine.artifacts.sweep import ArtifactSweeper

__all__ = ("ArtifactSweeper", "Artifacts", "place_at")
