"""Detection of bulk items that are whole submissions, where params are expected."""

from collections.abc import Mapping, Set
from difflib import get_close_matches
from typing import Any

import msgspec

from horae.errors import BadInput
from horae.model.definitions.job import Spec
from horae.model.fleet.submit import Submit

FIELDS = frozenset(field.encode_name for field in msgspec.structs.fields(Submit))
ALIKE = 0.8  # similarity, by difflib, from which a name is taken for a misspelt field
MOST_MISSPELT = 2  # misspelt fields of one item, because each comparison takes long
REMEDY = (
    'If a request has `job`, its items are params: write {{"job": "{job}", "items": [{{...params...}}]}}. To give each'
    ' item its own options, remove `job` from the request: {{"items": [{{"job": "{job}", "params": {{...}}}}]}}.'
)


def refuse_submission(item: bytes, spec: Spec) -> BadInput | None:
    """Return the error for an item that looks like a submission, which has `params` or `job`.

    An item is not refused if the job itself has a param of that name.
    """
    if b'"params"' not in item and b'"job"' not in item:
        return None
    try:
        given = msgspec.json.decode(item)
    except msgspec.DecodeError:
        return None  # another check refuses invalid JSON
    taken = spec.params.keys() | ((spec.schema or {}).get("properties") or {}).keys()
    if not isinstance(given, dict) or not is_submission(given, spec.name, taken):
        return None
    return BadInput("This item looks like a submission, not like params.", REMEDY.format(job=spec.name), field="items")


def is_submission(given: Mapping[str, Any], job: str, taken: Set[str] = frozenset()) -> bool:
    """Return whether an item has an object `params`, or names its own job, and has only fields of a submission.

    Few misspelt fields count as fields of a submission, so that this mistake does not hide the other. `taken` are the
    known params of the job.
    """
    says_params = isinstance(given.get("params"), Mapping) and "params" not in taken
    says_job = given.get("job") == job and "job" not in taken
    others = given.keys() - FIELDS
    return (
        (says_params or says_job)
        and len(others) <= MOST_MISSPELT
        and all(get_close_matches(name, FIELDS, 1, ALIKE) for name in others)
    )
