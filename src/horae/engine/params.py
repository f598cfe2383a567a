"""Params against what they may be: JSON objects within bounds, and the schema of the job's signature."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec

from horae.errors import BadInput, HoraeError
from horae.model.job import Job
from horae.model.parcel import check_item, plain_objects
from horae.model.schema import validator_of

MOST_VALIDATORS = 1000


class Params:
    """Checks items of jobs; what a schema is compiled to is kept, because a version never changes."""

    def __init__(self) -> None:
        self._validators: OrderedDict[tuple[UUID, int], Any] = OrderedDict()

    def check(self, item: bytes, job: Job) -> None:
        """Refuse an item that cannot be the params of an execution of this job."""
        check_item(item)
        if job.spec.schema is None:
            return
        params = {**job.spec.params, **(msgspec.json.decode(item) or {})}
        for error in self._validator(job).iter_errors(params):
            where = ".".join(["params", *map(str, error.instance_path)])
            detail = f'{where} of job "{job.spec.name}": {error.message}'
            raise BadInput(detail, "See the job's `schema`.", field=where)

    def check_all(self, items: Sequence[bytes], job: Job) -> dict[int, HoraeError]:
        """What is wrong with which of these items; usually nothing, which is found out quickly."""
        values = plain_objects(items)
        if values is not None and self._fit(values, job):
            return {}
        wrong: dict[int, HoraeError] = {}
        for i, item in enumerate(items):
            try:
                self.check(bytes(item), job)
            except HoraeError as error:
                wrong[i] = error
        return wrong

    def _fit(self, values: Sequence[dict[str, Any]], job: Job) -> bool:
        if job.spec.schema is None:
            return True
        is_valid, given = self._validator(job).is_valid, job.spec.params
        return all(is_valid({**given, **value} if given else value) for value in values)

    def _validator(self, job: Job) -> Any:
        found = self._validators.get((job.id, job.version))
        if found is None:
            found = validator_of(job.spec.schema or {})
            self._validators[job.id, job.version] = found
            if len(self._validators) > MOST_VALIDATORS:
                self._validators.popitem(last=False)
        return found
