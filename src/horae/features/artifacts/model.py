"""Artifacts as the API shows them."""

from uuid import UUID

from horae.model.base.instant import format_instant
from horae.model.base.view import Time, View
from horae.model.executions.output.artifact import Artifact, url_of


class ArtifactView(View, frozen=True, kw_only=True):
    """A file that an execution left behind; its content is read at `url`."""

    name: str
    url: str
    size: int
    type: str
    sha256: str
    attempt: int
    created_at: Time


def show_artifact(execution: UUID, artifact: Artifact) -> ArtifactView:
    """Return the view of an artifact."""
    return ArtifactView(
        name=artifact.name, url=url_of(execution, artifact.name),
        size=artifact.size, type=artifact.type, sha256=artifact.sha256, attempt=artifact.attempt,
        created_at=format_instant(artifact.at),
    )  # fmt: skip
