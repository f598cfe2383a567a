"""Parts of features that the kernel's routes and workers ask for by these types: `node.find(ListsJobs)`."""

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
    """A part that is missing while its feature is off."""

    feature: ClassVar[str]


class ListsJobs(OptionalPart):
    """Adds to jobs in a list what became of their executions."""

    feature = "statistics"

    @abstractmethod
    async def listed(self, jobs: Sequence[JobView]) -> list[ListedJobView]:
        """Return the same jobs with their statistics."""


class Upload(Struct, frozen=True, kw_only=True):
    """What a worker says of a file that it brings."""

    session: UUID
    parcel: UUID
    item: int
    attempt: int
    name: str
    type: str


class KeepsArtifacts(OptionalPart):
    """Keeps the files of executions."""

    feature = "artifacts"

    @abstractmethod
    async def put(self, namespace: int, upload: Upload, pieces: AsyncIterable[bytes]) -> Artifact:
        """Keep a content under its name, instead of an earlier one. It is safe, and told, when this returns."""
