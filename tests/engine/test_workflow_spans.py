"""Spans of ended workflows are reported with their own parcels, even if many executions end meanwhile."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from horae.errors import StoreUnavailable
from horae.features.tracing.engine import spans
from horae.features.tracing.engine.spans import WorkflowSpans
from horae.features.tracing.part import TracingPart
from horae.store.executions.state_changes import FinishedItems

A, B, C = (cast("FinishedItems", SimpleNamespace(parcel=UUID(int=n), workflow="workflow")) for n in (1, 2, 3))


class Fakes:
    """A store of parcels and definitions. Executions end while it is read."""

    def __init__(self) -> None:
        self.meanwhile: list[FinishedItems] = []
        self.away = False
        self.spans = WorkflowSpans(cast("Any", self), cast("Any", self), cast("Any", None))
        self.told: list[tuple[UUID, UUID]] = []
        self.spans._record = lambda ended, parcel, names: self.told.append((ended.parcel, parcel.id))  # type: ignore[method-assign]

    async def parcels(self, ids: Sequence[UUID]) -> list[Any]:
        self.spans.add(self.meanwhile)
        if self.away:
            raise StoreUnavailable("away")
        return [SimpleNamespace(id=id, envelope=SimpleNamespace(job=id, version=1)) for id in ids]

    async def get(self, versions: Sequence[Any]) -> dict[Any, Any]:
        return {}


async def test_a_workflow_span_is_reported_with_its_own_parcel(monkeypatch):
    monkeypatch.setattr(spans, "MOST", 2)
    it = Fakes()
    it.spans.add([A])
    it.meanwhile = [B, C]
    await it.spans.step()
    it.meanwhile = []
    await it.spans.step()
    assert it.told == [(one.parcel, one.parcel) for one in (A, B, C)]


async def test_a_server_that_stops_reports_all_spans(monkeypatch):
    monkeypatch.setattr(spans, "BATCH", 1)
    it, part = Fakes(), object.__new__(TracingPart)
    part.workflows = it.spans
    it.spans.add([A, B, C])
    await part.flush()
    assert [parcel for _, parcel in it.told] == [A.parcel, B.parcel, C.parcel]


async def test_unreported_spans_are_reported_later_in_order(monkeypatch):
    monkeypatch.setattr(spans, "MOST", 2)
    it = Fakes()
    it.spans.add([A, B])
    it.meanwhile, it.away = [C], True
    with pytest.raises(StoreUnavailable):
        await it.spans.step()
    it.meanwhile, it.away = [], False
    await it.spans.step()
    # When there is no room for all, the newest are kept.
    assert [parcel for _, parcel in it.told] == [B.parcel, C.parcel]
