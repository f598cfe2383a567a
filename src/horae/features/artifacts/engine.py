"""Uploads of artifacts by workers, reads by users, and deletion after the executions are deleted."""

import hashlib
import re
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator
from contextlib import aclosing
from uuid import UUID

import structlog

from horae.engine.executions.durable_steps import not_held
from horae.engine.executions.executions import Executions
from horae.engine.fleet.session_cache import SessionCache
from horae.engine.parts.optional import ArtifactUpload
from horae.engine.service import Alarm, Wait
from horae.engine.storage.file_storage import FileStorage
from horae.env import SECOND, Env
from horae.errors import BadInput, Busy, Gone, NotFound, TooLarge
from horae.features.artifacts.store import artifacts
from horae.model.base.duration import format_duration
from horae.model.base.ids import execution_id, index_of, parcel_of
from horae.model.executions.output.artifact import MOST_ARTIFACTS, RESULT, Artifact, check_name, check_type
from horae.model.fleet.protocol import MAX_RESULT
from horae.store.contract import Store
from horae.store.executions.durable.steps import is_held
from horae.store.executions.reads import housekeeping

log = structlog.get_logger("horae.artifacts")
MAX_NAME_IN_LOCATION = 100  # an artifact's location ends with at most this many characters of its name
_ODD = re.compile(r"[^A-Za-z0-9._-]|^\.")
ROUND_EVERY = 60.0  # seconds between two rounds over all artifacts
PACE = 1.0  # seconds between two batches of a round
TERM = 300 * SECOND  # the duration of the lease by which only one server sweeps
BATCH = 200  # the most artifacts, and the most contents, of one step


class Artifacts:
    """The artifacts of executions.

    Only the session that runs an execution may upload artifacts for it, and only for the attempt that it runs.
    """

    def __init__(
        self, env: Env, store: Store, sessions: SessionCache, executions: Executions, place: FileStorage, limit: int
    ) -> None:
        self._env, self._store, self._sessions, self._executions = env, store, sessions, executions
        self.place, self._limit = place, limit

    async def put(self, namespace: int, upload: ArtifactUpload, pieces: AsyncIterable[bytes]) -> Artifact:
        """Store the content of an upload under its name, replacing earlier content with this name.

        When this returns, the content is durable and the artifact is listed.
        """
        check_name(upload.name)
        check_type(upload.type)
        await self._sessions.get(namespace, upload.session)
        held = lambda: is_held(upload.session, upload.parcel, upload.item, upload.attempt)  # noqa: E731
        if not await self._store.read(held):
            raise not_held()
        location = self._location(namespace, upload)
        now = self._env.now()
        await self._store.write(lambda: artifacts.record_location(location, now))
        content = _Content(pieces, self._limit, copied=MAX_RESULT if upload.name == RESULT else 0)
        try:
            await self.place.write(location, content)
        except Exception as error:  # storages raise errors of any type
            if content.broken is not None:
                raise content.broken from None
            raise self._out_of_reach("write to", error) from None
        artifact = Artifact(
            name=upload.name, attempt=upload.attempt, size=content.size, type=upload.type,
            sha256=content.hash.hexdigest(), location=location, at=self._env.now(),
        )  # fmt: skip
        await self._keep(upload, artifact, content.copy)
        return artifact

    def _out_of_reach(self, act: str, error: Exception) -> Busy:
        log.error(f"the server cannot {act} the storage of artifacts", place=self.place.url, error=str(error))
        return Busy(f"The server cannot {act} the storage of artifacts.", "See the server's log.")

    async def _keep(self, upload: ArtifactUpload, artifact: Artifact, copy: bytes | None) -> None:
        verdict = await self._store.write(
            lambda: artifacts.store_artifact(upload.session, upload.parcel, upload.item, artifact, artifact.at, copy)
        )
        if verdict == "not held":
            raise not_held()
        if verdict == "too late":
            span = format_duration(artifacts.LONGEST_UPLOAD)
            raise TooLarge(f"The upload took longer than {span}.", "Compress the file, or upload it in parts.")
        if verdict == "too many":
            remedy = "Put several files into one archive."
            raise BadInput(f"An execution has at most {MOST_ARTIFACTS} artifacts.", remedy, field="name")

    async def list(
        self, namespace: int, execution: str | UUID, after: str = "", limit: int = MOST_ARTIFACTS
    ) -> list[Artifact]:
        """Return up to `limit` artifacts of an execution after a name, in the order of their names."""
        resolved = (await self._executions.find(namespace, execution)).execution.id
        return await self._store.read(
            lambda: artifacts.artifacts_of(parcel_of(resolved), index_of(resolved), after, limit)
        )

    async def get(self, namespace: int, execution: str | UUID, name: str) -> tuple[Artifact, AsyncGenerator[bytes]]:
        """Return an artifact, and its content in pieces."""
        resolved = (await self._executions.find(namespace, execution)).execution.id
        artifact = await self._store.read(lambda: artifacts.artifact_of(parcel_of(resolved), index_of(resolved), name))
        if artifact is None:
            remedy = f"GET /api/v1/executions/{resolved}/artifacts lists its artifacts."
            raise NotFound(f"This execution has no artifact {name[:60]!r}.", remedy)
        return artifact, await self._begin(artifact)

    async def _begin(self, artifact: Artifact) -> AsyncGenerator[bytes]:
        """Return the content in pieces. The first piece is read at once, so that missing content raises Gone here."""
        pieces = self.place.read(artifact.location)
        try:
            first = await anext(pieces, b"")
        except FileNotFoundError:
            remedy = "If there are several servers, all of them must be able to reach the same storage of artifacts."
            raise Gone(f"The content of {artifact.name!r} is not at {self.place.url}.", remedy) from None
        except Exception as error:  # storages raise errors of any type
            raise self._out_of_reach("read from", error) from None

        async def whole() -> AsyncGenerator[bytes]:
            async with aclosing(pieces):
                yield first
                async for piece in pieces:
                    yield piece

        return whole()

    def _location(self, namespace: int, upload: ArtifactUpload) -> str:
        """Return a path that no other upload has.

        It ends with the artifact's name, in which characters that not every storage allows are replaced.
        """
        execution = execution_id(upload.parcel, upload.item)
        plain = _ODD.sub("_", upload.name.rpartition("/")[2])[-MAX_NAME_IN_LOCATION:]
        return f"{namespace}/{execution}/{self._env.new_id()}/{plain}"


class _Content:
    """The pieces of an upload. Their size is counted and limited to `limit` bytes.

    A copy of the content stays in memory if it has at most `copied` bytes.
    """

    def __init__(self, pieces: AsyncIterable[bytes], limit: int, copied: int) -> None:
        self._pieces, self._limit, self._copied = pieces, limit, copied
        self._copy: list[bytes] = []
        self.size, self.hash = 0, hashlib.sha256()
        # The error that ended the upload. It is stored here because storages wrap it in errors of their own.
        self.broken: Exception | None = None

    @property
    def copy(self) -> bytes | None:
        """Return the whole content, or None if it is empty or larger than `copied`."""
        return b"".join(self._copy) if 0 < self.size <= self._copied else None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._pieces:
                self.size += len(piece)
                if self.size > self._limit:
                    raise TooLarge(f"The artifact is larger than {self._limit} bytes.", "Raise `artifact_limit`.")
                self.hash.update(piece)
                if self.size <= self._copied:
                    self._copy.append(piece)
                else:
                    self._copy.clear()
                yield piece
        except Exception as error:
            self.broken = error
            raise


class ArtifactSweeper:
    """A service that deletes artifacts of deleted executions, and contents to which no artifact refers."""

    name = "artifact-sweeper"

    def __init__(self, env: Env, store: Store, node: UUID, place: FileStorage) -> None:
        self._env, self._store, self._node, self._place = env, store, node, place
        self._at, self._after = artifacts.START, artifacts.OLDEST
        self.alarm = Alarm()

    async def step(self) -> Wait:
        """Check a batch of artifacts and delete a batch of contents, if this server has the duty."""
        now = self._env.now()
        if not await self._store.write(lambda: housekeeping.take_duty("artifacts", self._node, now, now + TERM)):
            return ROUND_EVERY
        self._at = await self._store.write(lambda: artifacts.delete_orphaned_page(self._at, BATCH, now))
        found = await self._store.read(lambda: artifacts.litter(now - artifacts.LONGEST_UPLOAD, BATCH, self._after))
        # The next step continues here, because contents that cannot be removed must not keep the others from it.
        self._after = found[-1] if len(found) == BATCH else artifacts.OLDEST
        removed = [location for _, location in found if await self._remove(location)]
        if removed:
            await self._store.write(lambda: artifacts.forget_deleted_locations(removed))
        if len(found) == BATCH:
            return 0.0 if len(removed) == BATCH else PACE
        return ROUND_EVERY if self._at == artifacts.START else PACE

    async def _remove(self, location: str) -> bool:
        try:
            await self._place.remove(location)
        except Exception as error:  # storages raise errors of any type; a later step tries again
            log.warning("an artifact cannot be removed", place=self._place.url, location=location, error=str(error))
            return False
        return True
