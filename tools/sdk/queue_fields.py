"""Generation of the fields of queues, policies and quotas for the UI's forms."""

from collections.abc import Iterator
from typing import Any

from horae.model.admission.policy import POLICIES
from horae.model.admission.queue import QUEUE
from horae.model.admission.quota import QUOTA
from horae.model.fields.kinds import Custom
from horae.model.fields.table import Row, Table
from tools.sdk.alert_fields import kinds, listed
from tools.sdk.plain_fields import described

HEAD = (
    "// The fields of queues, of policies by their kinds, and of quotas."
    " `python -m tools.sdk` writes this module from their tables.\n"
)


def text() -> str:
    """Return the content of the module."""
    lists = {"QUEUE": _fields(QUEUE), "POLICIES": kinds(POLICIES, _given), "QUOTA": _fields(QUOTA)}
    return HEAD + "".join(listed(name, values) for name, values in lists.items())


def _fields(table: Table) -> Iterator[dict[str, Any]]:
    for row, field in zip(table.rows, described(table), strict=True):
        yield {**field, "flag": f"--{row.flag}"}


def _given(row: Row) -> dict[str, Any]:
    return {"given": row.kind.option} if isinstance(row.kind, Custom) else {}
