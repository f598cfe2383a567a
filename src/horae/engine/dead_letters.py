"""Dead letters: executions that failed for good; looked at, tried again as new ones, or discarded."""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from horae.env import Env
from horae.model.execution import Extra
from horae.model.protocol import Submit
from horae.model.view import BulkView, DeadLetterGroups, DeadLetterView, Page
from horae.store.contract import Store
from horae.store.moves.submit import Receipt


class SubmitMany(Protocol):
    """`Submitter.submit`."""

    async def __call__(
        self,
        namespace: int,
        requests: Sequence[Submit],
        *,
        origin: str,
        caller: str = "",
        extras: Sequence[Extra] | None = None,
    ) -> list[Receipt]: ...


class DeadLetters:
    """The list of failed executions of a namespace."""

    def __init__(self, env: Env, store: Store, submit: SubmitMany) -> None:
        raise NotImplementedError

    async def list(
        self,
        namespace: int,
        *,
        job: str | None = None,
        error_type: str | None = None,
        since: str | int | None = None,
        until: str | int | None = None,
        state: str = "open",
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[DeadLetterView]:
        """Dead letters, newest first; `state` is open, retried, discarded or all."""
        raise NotImplementedError

    async def groups(
        self,
        namespace: int,
        *,
        job: str | None = None,
        since: str | int | None = None,
        until: str | int | None = None,
        state: str = "open",
    ) -> DeadLetterGroups:
        """Dead letters counted by job and error type."""
        raise NotImplementedError

    async def get(self, namespace: int, execution: str | UUID) -> DeadLetterView:
        """One dead letter. Raises NotFound when the execution has not failed."""
        raise NotImplementedError

    async def retry(self, namespace: int, execution: str | UUID, *, caller: str = "") -> DeadLetterView:
        """Submit it again: a new execution with `retryOf`, same params, present job version.

        Retrying twice answers with the same new execution.
        """
        raise NotImplementedError

    async def discard(self, namespace: int, execution: str | UUID) -> DeadLetterView:
        """Take it off the open list; it stays readable."""
        raise NotImplementedError

    async def retry_many(
        self,
        namespace: int,
        *,
        job: str | None = None,
        error_type: str | None = None,
        since: str | int | None = None,
        until: str | int | None = None,
        limit: int = 1000,
        caller: str = "",
    ) -> BulkView:
        """Retry open dead letters that match, newest first."""
        raise NotImplementedError

    async def discard_many(
        self,
        namespace: int,
        *,
        job: str | None = None,
        error_type: str | None = None,
        since: str | int | None = None,
        until: str | int | None = None,
        limit: int = 1000,
    ) -> BulkView:
        """Discard open dead letters that match, newest first."""
        raise NotImplementedError
