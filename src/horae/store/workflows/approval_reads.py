"""Steps of workflows that wait for somebody's word, across workflows, who has waited longest first."""

from uuid import UUID

import msgspec
from msgspec import Struct

from horae.env import Instant
from horae.model.workflows.decisions.values import Approval
from horae.store.script import Fetch, Script, Statement

OPEN = Statement(
    "open_approvals",
    "SELECT w.at, w.parcel, w.item, w.step, w.wait, f.execution, j.id, j.name FROM flow_waits w"
    " JOIN flows f ON f.parcel = w.parcel AND f.item = w.item JOIN jobs j ON j.id = f.job"
    " WHERE w.namespace = $1 AND w.kind = 'approval' AND (w.at, w.parcel, w.item, w.step) > ($2, $3, $4, $5)"
    " ORDER BY w.at, w.parcel, w.item, w.step LIMIT $6",
)
Place = tuple[Instant, UUID, int, str]


class Asked(Struct, frozen=True):
    """A step that waits for a word."""

    place: Place
    execution: UUID
    job: UUID
    job_name: str
    approval: Approval

    @property
    def at(self) -> Instant:
        return self.place[0]

    @property
    def step(self) -> str:
        return self.place[3]


def asked(namespace: int, after: Place, limit: int) -> Script[list[Asked]]:
    """Those after a place."""
    rows = yield Fetch(OPEN, (namespace, *after, limit))
    return [
        Asked((row[0], row[1], row[2], row[3]), row[5], row[6], row[7], msgspec.json.decode(row[4], type=Approval))
        for row in rows
    ]
