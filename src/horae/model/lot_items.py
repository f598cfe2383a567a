"""Items of a bulk submission that look like whole submissions, where their params are expected."""

from collections.abc import Mapping
from typing import Any

import msgspec

from horae.errors import BadInput
from horae.model.job import Spec
from horae.model.protocol import Submit

FIELDS = frozenset(field.encode_name for field in msgspec.structs.fields(Submit))
REMEDY = (
    'Beside `job`, items are params: write {{"job": "{job}", "items": [{{...params...}}]}}. To give each its own'
    ' terms, leave `job` out beside `items`: {{"items": [{{"job": "{job}", "params": {{...}}}}]}}.'
)


def refuse_submission(item: bytes, spec: Spec) -> BadInput | None:
    """The error of an item that has `params` and else only fields of a submission, unless the job has such a param."""
    if b'"params"' not in item or _takes_params(spec):
        return None
    try:
        given = msgspec.json.decode(item)
    except msgspec.DecodeError:
        return None  # refused for that
    if not isinstance(given, dict) or not is_submission(given):
        return None
    return BadInput("This item looks like a submission, not like params.", REMEDY.format(job=spec.name), field="items")


def is_submission(given: Mapping[str, Any]) -> bool:
    """Whether an item has `params`, an object, and no other fields than those of a submission."""
    return isinstance(given.get("params"), Mapping) and given.keys() <= FIELDS


def _takes_params(spec: Spec) -> bool:
    return "params" in spec.params or "params" in ((spec.schema or {}).get("properties") or {})
