"""Durable steps: results that running executions store on the server, and the signals that they wait for.

A worker stores many steps by one call, and calls of many workers share one transaction. So code continues as soon as
its step is on disk, and each step costs only a part of a commit.
"""

from collections.abc import Sequence
from uuid import UUID

from horae.engine.batcher import Batcher
from horae.engine.fleet.session_cache import SessionCache
from horae.env import Env
from horae.errors import BadInput, Conflict, TooLarge
from horae.model.base.buckets import Buckets
from horae.model.documents.nesting import MAX_NESTING, is_too_deep
from horae.model.executions.signal_waits import compile_signal_filter
from horae.model.fleet.protocol import (
    MAX_CHECKPOINT,
    MAX_RESULT,
    OWN_STEPS,
    Await,
    Awaited,
    KnownSteps,
    Remember,
    Remembered,
    Step,
    StepRemembered,
)
from horae.store.contract import Store
from horae.store.executions.durable import signals, steps

Call = tuple[UUID, list[Step]]
MOST_CALLS, MOST_BYTES = 256, 4 * 1024 * 1024  # calls, and bytes, in one transaction


def not_held() -> Conflict:
    return Conflict("This session does not hold that execution.", "Stop running it.")


class DurableSteps:
    """Stores steps, checkpoints and waits of running executions, fenced by session and attempt."""

    def __init__(self, env: Env, store: Store, sessions: SessionCache) -> None:
        self._env, self._store, self._sessions = env, store, sessions
        self._batcher: Batcher[Call, list[StepRemembered]] = Batcher(
            self._commit, most=MOST_CALLS, size=_size, most_size=MOST_BYTES, in_flight=2
        )

    @property
    def batches(self) -> Buckets:
        """The numbers of calls that shared a transaction."""
        return self._batcher.sizes

    async def remember(self, namespace: int, session: UUID, body: Remember) -> Remembered:
        """Store the results of steps before the code continues.

        Steps of executions that the session does not hold are refused.
        """
        await self._sessions.get(namespace, session)
        for step in body.steps:
            _check_step(step)
        return Remembered(steps=await self._batcher.do((session, body.steps)))

    async def _commit(self, calls: Sequence[Call]) -> Sequence[list[StepRemembered]]:
        """Store the steps of several calls in one transaction."""
        records = [(session, step) for session, steps in calls for step in steps]
        now = self._env.now()
        answers = iter(await self._store.write(lambda: steps.remember(records, now)))
        return [[next(answers) for _ in own_steps] for _, own_steps in calls]

    async def known(self, namespace: int, session: UUID, parcel: UUID, item: int, after: str = "") -> KnownSteps:
        """Return a page of the finished steps of an item that the session holds: the steps with names after `after`."""
        await self._sessions.get(namespace, session)
        found = await self._store.read(lambda: steps.recall(session, parcel, item, namespace, after))
        if found is None:
            raise not_held()
        return found

    async def wait(self, namespace: int, session: UUID, body: Await) -> Awaited:
        """Register a step's wait for a signal.

        Return the signal if it has arrived, or the time until which the step waits.
        """
        await self._sessions.get(namespace, session)
        _check_name(body.step, "step")
        if body.filter is not None:
            compile_signal_filter(body.filter)
        now = self._env.now()
        answer = await self._store.write(lambda: signals.wait(session, body, now))
        if answer is None:
            raise not_held()
        return answer

    async def stop(self) -> None:
        """Finish pending calls."""
        await self._batcher.close()


def _check_step(step: Step) -> None:
    size = len(bytes(step.result))
    if step.name == steps.CHECKPOINT and size > MAX_CHECKPOINT:
        remedy = f"{MAX_CHECKPOINT} are allowed; store the data elsewhere and a reference to it in the checkpoint."
        raise TooLarge(f"A checkpoint has {size} bytes.", remedy)
    if size > MAX_RESULT:
        raise TooLarge(f"The result of step {step.name!r} has {size} bytes.", f"{MAX_RESULT} are allowed.")
    if is_too_deep(bytes(step.result)):
        remedy = f"Flatten it: {MAX_NESTING} levels are allowed."
        raise BadInput(f"The result of step {step.name!r} is nested too deeply.", remedy, field="result")
    _check_name(step.name, "name")


def _check_name(name: str, field: str) -> None:
    if "\0" in name:
        raise BadInput("A step's name contains a NUL character.", "Give it another name.", field=field)
    if name.startswith("@") and not OWN_STEPS.fullmatch(name):
        remedy = (
            'Names that begin with "@" are reserved for Horae: @checkpoint, @sleep, @sleep#2, ... and @wait:SIGNAL.'
        )
        raise BadInput(f'"{name[:60]}" cannot name a step.', remedy, field=field)


def _size(call: Call) -> int:
    return sum(len(bytes(step.result)) for step in call[1])
