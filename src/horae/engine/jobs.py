"""Jobs: created, edited, paused, deleted and restored, each change in one transaction."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal
from uuid import UUID

from horae.env import Env
from horae.model.view import JobVersionView, JobView, Page
from horae.store.contract import Store
from horae.store.moves.promote import Ranker

Queued = Literal["cancel", "finish"]
Running = Literal["finish", "cancel"]


class Jobs:
    """What can be done with jobs. A `ref` is a job's name or id."""

    def __init__(
        self,
        env: Env,
        store: Store,
        directory_hint: Callable[[], object] = lambda: None,
        *,
        rank: Ranker,
        on_change: Callable[[UUID], object] = lambda job: None,
        on_queued: Callable[[Mapping[int, int]], object] = lambda lanes: None,
        on_asked: Callable[[UUID], object] = lambda session: None,
        fire_due: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        """`directory_hint` is called when a queue or lane may be new, `on_change` with every job that changed,
        `on_queued` with lanes and their least new rank, `on_asked` with sessions that were asked to stop something;
        `fire_due` lets the scheduler decide what is due before a schedule changes.
        """
        raise NotImplementedError

    async def create(self, namespace: int, body: Any) -> JobView:
        """Create a job from the decoded body of POST /api/v1/jobs. Raises BadInput, Conflict (with `jobId`)."""
        raise NotImplementedError

    async def put(self, namespace: int, body: Any) -> tuple[JobView, Literal["created", "changed", "unchanged"]]:
        """Make the job of this name be as the body says: what `apply` does. An equal definition makes no version."""
        raise NotImplementedError

    async def get(self, namespace: int, ref: str) -> JobView:
        """A job; deleted ones by id. Raises NotFound with the nearest names."""
        raise NotImplementedError

    async def list(
        self,
        namespace: int,
        *,
        search: str | None = None,
        prefix: str | None = None,
        state: str | None = None,
        tag: str | None = None,
        queue: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[JobView]:
        """Jobs by name; deleted ones only when `state` asks for them. `tag` is "name" or "name=value"."""
        raise NotImplementedError

    async def edit(
        self, namespace: int, ref: str, patch: Any, *, if_match: int | None = None, replace: bool = False
    ) -> JobView:
        """Change what the patch names (`replace`: the whole definition); every real change is a version.

        Raises Stale when `if_match` is not the present version.
        """
        raise NotImplementedError

    async def pause(self, namespace: int, ref: str) -> JobView:
        """Start nothing of this job until it is resumed; what runs goes on."""
        raise NotImplementedError

    async def resume(self, namespace: int, ref: str) -> JobView:
        """Go on: fires left out are in the ledger as skipped-paused, what waited is queued."""
        raise NotImplementedError

    async def delete(
        self, namespace: int, ref: str, *, queued: Queued = "cancel", running: Running = "finish",
        if_match: int | None = None,
    ) -> JobView:  # fmt: skip
        """Stop a job's triggers at once and free its name; history stays readable, `restore` undoes it."""
        raise NotImplementedError

    async def restore(self, namespace: int, ref: str) -> JobView:
        """Undo a deletion; a name means the job of that name deleted last. Raises Conflict when the name is taken."""
        raise NotImplementedError

    async def versions(self, namespace: int, ref: str) -> list[JobVersionView]:
        """All versions, newest first."""
        raise NotImplementedError

    async def rollback(self, namespace: int, ref: str, version: int, *, if_match: int | None = None) -> JobView:
        """Make a new version that reads as an earlier one."""
        raise NotImplementedError
