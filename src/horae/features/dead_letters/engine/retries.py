"""Retries of dead letters. Each is submitted as a new execution, and then marked with the id of this execution."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol
from uuid import UUID

from horae.engine.executions.reruns import patched_params
from horae.errors import BadInput, Conflict, NotFound, TooLarge
from horae.model.base.duration import DAY
from horae.model.executions.execution import CANCELLED, Execution, Extra, Rerun
from horae.model.executions.show_execution import RETRY_KEY
from horae.model.executions.submission import Receipt
from horae.model.fleet.submit import Submit
from horae.model.workflows.decisions.rerun import FAILED
from horae.store.contract import Store
from horae.store.executions.leaving import dead_letters as moves
from horae.store.executions.reads import execution_reads as reads
from horae.store.workflows import rows as workflow_rows

Params = dict[str, Any] | None  # a merge patch of a dead letter's params
KEEP_KEY = 400 * DAY  # how long another retry of a dead letter returns the execution of the first retry


class SubmitMany(Protocol):
    """The signature of `Submitter.submit_all`, which accepts all requests or none."""

    async def __call__(
        self,
        namespace: int,
        requests: Sequence[Submit],
        *,
        origin: str,
        caller: str = "",
        extras: Sequence[Extra] | None = None,
    ) -> list[Receipt]: ...


class Retries:
    """Retries dead letters."""

    def __init__(self, store: Store, submit: SubmitMany) -> None:
        self._store, self._submit = store, submit

    async def retry(
        self, namespace: int, letters: Sequence[Execution], caller: str, params: Params = None
    ) -> list[UUID]:
        """Submit dead letters again and mark them; return the ids of the new executions.

        `params` is a patch of their params. A workflow continues from its failed steps, with its current definition.
        """
        workflows = await self._store.read(lambda: workflow_rows.workflows_of([letter.id for letter in letters]))
        extras = {letter.id: _retry_extra(letter, is_workflow=letter.id in workflows) for letter in letters}
        made: dict[UUID, UUID] = {}
        left = [(letter, f"{RETRY_KEY}{letter.id}") for letter in letters]
        while left:
            requests = [_retry_request(letter, params, key) for letter, key in left]
            given = [extras[letter.id] for letter, _ in left]
            receipts = await self._submit(namespace, requests, origin="retry", caller=caller, extras=given)
            made |= {letter.id: receipt.execution_id for (letter, _), receipt in zip(left, receipts, strict=True)}
            left = await self._cancelled_retries(namespace, left, receipts)
        marked = [(letter.id, made[letter.id]) for letter in letters]
        await self._store.change(lambda now: moves.mark(moves.RETRIED, marked, now))
        return [made[letter.id] for letter in letters]

    async def _cancelled_retries(
        self, namespace: int, asked: Sequence[tuple[Execution, str]], receipts: Sequence[Receipt]
    ) -> list[tuple[Execution, str]]:
        """Return the dead letters for which the receipt names an earlier retry that was cancelled.

        They must be submitted again, each with the returned key, which differs from that of the earlier retry.
        """
        left: list[tuple[Execution, str]] = []
        for (letter, _), receipt in zip(asked, receipts, strict=True):
            known = receipt.execution_id
            found = await self._store.read(lambda: reads.by_id(known, namespace)) if receipt.deduplicated else None  # noqa: B023
            if found is not None and found.execution.state == CANCELLED:
                left.append((letter, f"{RETRY_KEY}{letter.id}:{known}"))
        return left

    async def retry_each(
        self, namespace: int, letters: Sequence[Execution], caller: str, params: Params = None
    ) -> tuple[list[UUID], list[str]]:
        """Retry all dead letters that can be retried.

        If the batch of a job is refused, its dead letters are tried one by one. Return the ids of the new executions,
        and the reasons of the refusals.
        """
        made: list[UUID] = []
        notes: dict[str, None] = {}
        waiting = [list(group) for group in _by_job(letters)]
        while waiting:
            batch = waiting.pop(0)
            try:
                made += await self.retry(namespace, batch, caller, params)
            except (BadInput, NotFound, Conflict, TooLarge) as error:
                if len(batch) == 1:
                    notes[str(error)] = None
                else:
                    waiting += [[letter] for letter in batch]
        return made, list(notes)


def _by_job(letters: Iterable[Execution]) -> Iterable[list[Execution]]:
    groups: dict[UUID, list[Execution]] = {}
    for letter in letters:
        groups.setdefault(letter.job, []).append(letter)
    return groups.values()


def _retry_extra(letter: Execution, *, is_workflow: bool) -> Extra:
    """Return the extra properties of a retry.

    It has the data interval and the upstream of the dead letter, so that dependent jobs can start when it succeeds.
    """
    extra = letter.extra
    return Extra(
        retry_of=letter.id,
        rerun=Rerun(of=letter.id, since=FAILED, latest=True) if is_workflow else None,
        tags=extra.tags,
        interval=extra.interval,
        upstream=extra.upstream,
        propagate=extra.propagate,
    )


def _retry_request(letter: Execution, params: Params, key: str) -> Submit:
    """Return the request for a retry, with patched params if there is a patch.

    Because of its key, another retry returns the same execution.
    """
    return Submit(
        job=str(letter.job),
        params=letter.params if params is None else patched_params(letter.params, params),
        key=key,
        key_for=KEEP_KEY,
        priority=letter.priority,
        tags=letter.extra.tags,
    )
