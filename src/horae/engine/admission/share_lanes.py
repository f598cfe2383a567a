"""Lanes of fair queues: each share has its own lane, which is created when the share is first used."""

from collections.abc import Sequence

from msgspec import structs

from horae.engine.definitions.directory import LocalDirectory
from horae.env import Env
from horae.errors import HoraeError
from horae.model.admission.policy import FairPolicy
from horae.model.admission.share_key import share_of, shares_of
from horae.model.executions.execution import Extra
from horae.model.executions.submission import NewBulk, NewItems, Submission
from horae.store.admission.share_lanes import lanes_of
from horae.store.contract import Store
from horae.store.definitions.jobs import StoredJob


class ShareLanes:
    """Finds the shares of executions and their lanes. Submissions to queues that are not fair are not changed."""

    def __init__(self, env: Env, store: Store, directory: LocalDirectory) -> None:
        self._env, self._store, self._directory = env, store, directory

    def share(self, stored: StoredJob, item: bytes, extra: Extra) -> str:
        """Return the share of an execution. Raises BadInput when the queue's template cannot be filled."""
        policy = self._directory.policy(stored.queue)
        return (
            share_of(policy, stored.job.spec, item, extra.tags, extra.caller) if isinstance(policy, FairPolicy) else ""
        )

    def shares(
        self, stored: StoredJob, items: Sequence[bytes], extra: Extra, wrong: dict[int, HoraeError]
    ) -> Sequence[str] | None:
        """Return the shares of many items, or None when the queue is not fair.

        `wrong` has the faulty items by index; items whose share cannot be computed are added to it.
        """
        policy = self._directory.policy(stored.queue)
        if not isinstance(policy, FairPolicy):
            return None
        sound = items if not wrong else [b"{}" if i in wrong else item for i, item in enumerate(items)]
        found, refused = shares_of(policy, stored.job.spec, sound, extra.tags, extra.caller)
        for i, error in refused.items():
            wrong.setdefault(i, error)
        return found

    async def assign_lanes(self, submission: Submission) -> Submission:
        """Return the submission with each execution in the lane of its share."""
        places = {(execution.envelope.lane, execution.share) for execution in submission.executions if execution.share}
        if not places:
            return submission
        known = {place: lane for place in places if (lane := self._directory.lane_of_share(*place)) is not None}
        unknown = places - known.keys()
        if unknown:
            now = self._env.now()
            created = await self._store.write(lambda: lanes_of(unknown, now))
            for (base, share), lane in created.items():
                self._directory.add_share(base, share, lane)
            known |= created
        return structs.replace(
            submission, executions=[_in_share_lane(execution, known) for execution in submission.executions]
        )


def _in_share_lane(execution: NewItems, lanes: dict[tuple[int, str], int]) -> NewItems:
    if not execution.share:
        return execution
    return structs.replace(
        execution, envelope=structs.replace(execution.envelope, lane=lanes[execution.envelope.lane, execution.share])
    )


def split_by_share(bulk: NewBulk, shares: Sequence[str] | None) -> list[NewBulk]:
    """Split a bulk into parts of one share each, in the order of its items."""
    if shares is None:
        return [bulk]
    if shares.count(shares[0]) == len(shares):
        return [structs.replace(bulk, share=shares[0])]
    parts: list[NewBulk] = []
    lo = 0
    for i in range(1, len(shares) + 1):
        if i == len(shares) or shares[i] != shares[lo]:
            parts.append(structs.replace(bulk, items=bulk.items[lo:i], share=shares[lo]))
            lo = i
    return parts
