"""What a round of decisions about a workflow knows: rows as they will be written, and what they change."""

from collections.abc import Iterable

from msgspec import structs

from horae.env import Instant
from horae.model.fleet.protocol import Failure
from horae.model.workflows.decisions.flow import GIVEN_UP, OPEN, About, Ask, Deciding, Decisions, Final, Flow, StepRow
from horae.model.workflows.decisions.plan import Plan
from horae.model.workflows.decisions.starting import Starter


class Known:
    """What is known and what has been decided so far. `flow` and the rows are as they will be written."""

    def __init__(self, plan: Plan, flow: Flow, about: About, now: Instant) -> None:
        self.plan, self.flow, self.now = plan, flow, now
        self._starter = Starter(plan, about, now)
        self._rows: dict[str, StepRow] = {}
        self._full: set[str] = set()  # whose results are known, too
        self._changed: dict[str, None] = {}
        self._fresh: set[str] = set()
        self._fallen: list[str] = []  # steps that ended, and whose followers have not heard of it
        self._ready: list[str] = []  # steps that may start
        self._made = Decisions(flow=flow)

    def _know(self, rows: Iterable[str] = (), results: Iterable[str] = ()) -> Deciding[None]:
        wanted = frozenset(name for name in results if name not in self._full)
        others = frozenset(name for name in rows if name not in self._rows) - wanted
        if wanted or others:
            found = yield Ask(others, wanted)
            for name, row in found.items():
                mine = self._rows.get(name)
                self._rows[name] = row if mine is None else structs.replace(mine, result=row.result)
            self._full |= wanted

    def _know_items(self, steps: frozenset[str]) -> Deciding[None]:
        """Learn which items of foreach steps succeeded."""
        if steps:
            for name, row in (yield Ask(items=steps)).items():
                self._rows[name] = structs.replace(self._rows.get(name, row), done=row.done)

    @property
    def _going_on(self) -> bool:
        """Whether steps of the present phase may still begin."""
        return not self.flow.stopped

    def _end(self, row: StepRow, state: Final, result: bytes | None, error: Failure | None, reason: str) -> None:
        flow = self.flow
        began = row.state in OPEN
        self._put(
            structs.replace(
                row, state=state, result=result, error=error, reason=reason, ended_at=self.now, ended_seq=flow.ended,
                wake_at=None,
            )
        )  # fmt: skip
        self.flow = structs.replace(flow, left=flow.left - 1, open=flow.open - began, ended=flow.ended + 1)
        self._fallen.append(row.step)

    def _put(self, row: StepRow, *, fresh: bool = False) -> None:
        self._rows[row.step] = row
        self._changed[row.step] = None
        if fresh:
            self._fresh.add(row.step)
            self._full.add(row.step)

    def _drop_pending(self, rest: Final) -> None:
        """Rows that have not begun become what the rest becomes: by the store, unless it has not got them yet."""
        for name in list(self._changed):
            row = self._rows[name]
            if row.state not in ("pending", "held"):
                continue
            ended = structs.replace(row, state=rest, reason=GIVEN_UP, ended_at=self.now)
            self._rows[name] = ended
            if name not in self._fresh:
                del self._changed[name]
