"""Artifacts as JSON."""

from uuid import UUID

from horae.model.base.instant import format_instant
from horae.model.base.view import Time, View
from horae.model.executions.output.artifact import Artifact, url_of


class ArtifactView(View, frozen=True, kw_only=True):
    """A file that an execution left behind; `url` is where its content is read."""

    name: str
    url: str
    size: int
    type: str
    sha256: str
    attempt: int
    created_at: Time


def show_artifact(execution: UUID, artifact: Artifact) -> ArtifactView:
    """An artifact as people see it."""
    return ArtifactView(
        name=artifact.name, url=url_of(execution, artifact.name),
        size=artifact.size, type=artifact.type, sha256=artifact.sha256, attempt=artifact.attempt,
        created_at=format_instant(artifact.at),
    )  # fmt: skip
