"""Types by which the kernel's routes find the parts of features: `node.find(JobStatisticsPart)`."""

from abc import abstractmethod
from collections.abc import AsyncIterable, Sequence
from typing import ClassVar
from uuid import UUID

from msgspec import Struct

from horae.engine.parts.part import ServerPart
from horae.model.definitions.job_view import JobView
from horae.model.definitions.listed_job_view import ListedJobView
from horae.model.executions.output.artifact import Artifact


class OptionalPart(ServerPart):
    """A part that is missing while its feature is disabled."""

    feature: ClassVar[str]


class JobStatisticsPart(OptionalPart):
    """Adds statistics of executions to the jobs in a list."""

    feature = "statistics"

    @abstractmethod
    async def listed(self, jobs: Sequence[JobView]) -> list[ListedJobView]:
        """Return the same jobs with their statistics."""


class ArtifactUpload(Struct, frozen=True, kw_only=True):
    """The description of a file that a worker uploads."""

    session: UUID
    parcel: UUID
    item: int
    attempt: int
    name: str
    type: str


class ArtifactStoragePart(OptionalPart):
    """Stores the files of executions."""

    feature = "artifacts"

    @abstractmethod
    async def put(self, namespace: int, upload: ArtifactUpload, pieces: AsyncIterable[bytes]) -> Artifact:
        """Store a file under its name and replace an earlier one. On return it is durable and announced."""
