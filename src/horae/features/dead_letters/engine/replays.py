"""Operations on replays of dead letters, and the service that runs replays."""

from collections.abc import Sequence
from typing import Any, Unpack
from uuid import UUID

import msgspec

from horae.engine.base.refs import as_id
from horae.engine.executions.promoter import wait_until
from horae.engine.service import Alarm, Wait
from horae.env import SECOND, Env
from horae.errors import Busy, Conflict, NotFound, OverQuota, StoreUnavailable
from horae.features.dead_letters.engine.dead_letters import DeadLetters
from horae.features.dead_letters.engine.filters import LetterFilterFields, place_of
from horae.features.dead_letters.model import OPEN, Replay, ReplayState, ReplayView, show_replay
from horae.features.dead_letters.store import replays as moves
from horae.model.admission.rate import parse_rate
from horae.model.base.cursor import check_limit, make_cursor, read_cursor
from horae.model.base.view import Page
from horae.store.contract import Store
from horae.store.definitions import job_reads

LAST = UUID(int=2**128 - 1)
PATIENCE = 5 * SECOND  # the pause before retrying a batch that was refused because of a quota or an overload
list_of = list  # another name for `list`, because the class has a method `list`


class Replays:
    """The operations on replays."""

    def __init__(self, env: Env, store: Store, letters: DeadLetters, wake: Any = lambda: None) -> None:
        """Set the callback `wake`, which is called when a replay may have to run."""
        self._env, self._store, self._letters, self._wake = env, store, letters, wake

    async def counts(self) -> dict[tuple[int, str], int]:
        """Count the replays that have not ended, by namespace and state."""
        return await self._store.read(moves.count_unfinished)

    async def create(
        self,
        namespace: int,
        *,
        rate: str | None = None,
        params: dict[str, Any] | None = None,
        caller: str = "",
        **which: Unpack[LetterFilterFields],
    ) -> ReplayView:
        """Create a replay, which retries the open dead letters that match now, newest first, at a limited rate.

        Executions created later are not included. So an execution that fails again is not retried by the same replay.
        """
        letters = await self._letters.read(namespace, which)
        now = self._env.now()
        letters = msgspec.structs.replace(letters, until=now if letters.until is None else min(letters.until, now))
        replay = Replay(
            id=self._env.new_id(), namespace=namespace, letters=letters,
            rate=None if rate is None else parse_rate(rate, "rate"),
            params=None if params is None else msgspec.json.encode(params).decode(), place=place_of(letters.until),
            next_at=now, total=await self._letters.count(namespace, letters), created_by=caller, created_at=now,
        )  # fmt: skip
        await self._store.write(lambda: moves.put(replay))
        self._wake()
        return await self.get(namespace, replay.id)

    async def get(self, namespace: int, ref: str | UUID) -> ReplayView:
        """Return a replay. Raises NotFound."""
        return (await self._shown([await self._find(namespace, ref)]))[0]

    async def list(
        self, namespace: int, *, state: ReplayState | None = None, limit: int = 50, cursor: str | None = None
    ) -> Page[ReplayView]:
        """Return a page of replays, newest first."""
        check_limit(limit)
        before = LAST if cursor is None else read_cursor(cursor, UUID)
        found = await self._store.read(lambda: moves.page(namespace, before, state, limit + 1))
        following = make_cursor(found[limit - 1].id) if len(found) > limit else None
        return Page(items=await self._shown(found[:limit]), next_cursor=following)

    async def pause(self, namespace: int, ref: str | UUID) -> ReplayView:
        """Pause a replay until it is resumed."""
        return await self._change(namespace, ref, "paused")

    async def resume(self, namespace: int, ref: str | UUID) -> ReplayView:
        """Resume a paused replay."""
        return await self._change(namespace, ref, "running")

    async def cancel(self, namespace: int, ref: str | UUID) -> ReplayView:
        """Cancel a replay for good; executions that it retried are not affected."""
        return await self._change(namespace, ref, "cancelled")

    async def _find(self, namespace: int, ref: str | UUID) -> Replay:
        replay_id = as_id(ref)
        found = None if replay_id is None else await self._store.read(lambda: moves.get(replay_id, namespace))
        if found is None:
            raise NotFound(f"There is no replay {str(ref)[:60]}.", "List them with `horae dlq replays list`.")
        return found

    async def _shown(self, found: Sequence[Replay]) -> "list_of[ReplayView]":
        jobs = sorted({replay.letters.job for replay in found if replay.letters.job is not None})
        names = await self._store.read(lambda: job_reads.names_of(jobs)) if jobs else {}
        return [show_replay(replay, names) for replay in found]

    async def _change(self, namespace: int, ref: str | UUID, state: ReplayState) -> ReplayView:
        replay_id = (await self._find(namespace, ref)).id
        before = await self._store.change(lambda now: moves.change(replay_id, namespace, state, OPEN, now))
        if before is not None and before.state not in OPEN:
            raise Conflict(
                f"Replay {replay_id} has ended: {before.state}.", "Create another one for the remaining dead letters."
            )
        self._wake()
        return await self.get(namespace, replay_id)


class Replayer:
    """A service that runs due replays, one batch at a time. It may run on several servers."""

    name = "replayer"

    def __init__(self, env: Env, store: Store, letters: DeadLetters) -> None:
        self._env, self._store, self._letters = env, store, letters
        self.retried = 0
        self.alarm = Alarm()

    async def step(self) -> Wait:
        """Run one batch of the replay that is due first."""
        replay = await self._store.change(moves.take_up)
        if replay is not None:
            await self._work(replay)
            return 0.0
        return wait_until(await self._store.read(moves.next_due), self._env.now())

    async def _work(self, replay: Replay) -> None:
        began = self._env.now()
        params = None if replay.params is None else msgspec.json.decode(replay.params)
        try:
            place, counts, notes = await self._letters.replay(
                replay.namespace, replay.letters, replay.place, replay.batch, caller=replay.created_by, params=params
            )
        except StoreUnavailable:
            raise  # the progress cannot be written now; after the lease has expired, some server repeats the batch
        except (OverQuota, Busy) as error:
            place, counts, notes, began = replay.place, (0, 0, 0), [str(error)], began + PATIENCE
        self.retried += counts[1]
        note = notes[0][:500] if notes else ""
        next_at, done = began + replay.pace(counts[0]), self._env.now() if place is None else None
        await self._store.write(lambda: moves.advance(replay, place or replay.place, next_at, counts, note, done))
