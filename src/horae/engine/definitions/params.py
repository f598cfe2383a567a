"""Checks of params: they must be JSON objects within bounds, and fit the schema of their job."""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from uuid import UUID

from horae.errors import BadInput, HoraeError
from horae.model.definitions.job import Job
from horae.model.documents.schema import CheckBudget, ParamsCheck
from horae.model.documents.schema_cost import MOST_UNITS
from horae.model.executions.parcel import check_item, decode_if_small

MOST_VALIDATORS = 1000
TOGETHER = 500  # items that are decoded together
A_TURN = MOST_UNITS // 4  # units of checking work after which other requests get their turn


class ParamsChecker:
    """Checks items against their job's schema. Compiled schemas are cached, because a version never changes."""

    def __init__(self) -> None:
        self._fits: OrderedDict[tuple[UUID, int], ParamsCheck] = OrderedDict()
        self._spent = 0  # units since the last turn of other requests
        self._turns = asyncio.Lock()  # submissions go on one at a time, and other requests run in between

    def check(self, item: bytes, job: Job, spent: CheckBudget | None = None) -> None:
        """Refuse an item that cannot be the params of an execution of this job."""
        check_item(item)
        if job.spec.schema is None:
            return
        fit = self._fit(job)
        units = fit.units(item)
        self._spent += units
        if spent is not None:
            spent.take(units)
        problem = fit.problem(item, units)
        if problem is not None:
            where = ".".join(["params", *problem.path])
            detail = f'{where} of job "{job.spec.name}": {problem.message}'
            raise BadInput(detail, "See the job's `schema`.", field=where)

    async def yield_turn(self) -> None:
        """Give other requests their turn if the checks since the last one took long."""
        if self._spent <= A_TURN and not self._turns.locked():
            return
        async with self._turns:
            if self._spent > A_TURN:
                self._spent = 0
                await asyncio.sleep(0)

    async def check_all(self, items: Sequence[bytes], job: Job) -> dict[int, HoraeError]:
        """Return the errors of items by index. Groups of items without errors are usually checked quickly at once."""
        wrong: dict[int, HoraeError] = {}
        for begin in range(0, len(items), TOGETHER):
            group = items[begin : begin + TOGETHER]
            if not self._all_fit(group, job):
                for i, item in enumerate(group, begin):
                    await self.yield_turn()
                    try:
                        self.check(bytes(item), job)
                    except HoraeError as error:
                        wrong[i] = error
            await self.yield_turn()
        return wrong

    def _all_fit(self, items: Sequence[bytes], job: Job) -> bool:
        """Return whether all items fit, as far as a quick check can tell."""
        values = decode_if_small(items)
        if values is None or job.spec.schema is None:
            return values is not None
        fit = self._fit(job)
        units = [fit.units(bytes(item)) for item in items]
        if sum(units) > MOST_UNITS:
            return False
        self._spent += sum(units)
        return all(map(fit.fits, values, units))

    def _fit(self, job: Job) -> ParamsCheck:
        found = self._fits.get((job.id, job.version))
        if found is None:
            found = self._fits[job.id, job.version] = ParamsCheck(job.spec)
            if len(self._fits) > MOST_VALIDATORS:
                self._fits.popitem(last=False)
        return found
