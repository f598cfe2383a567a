"""Steps that may start do so, or are held, or end as they begin."""

from msgspec import structs

from horae.model.expressions.template import TemplateError
from horae.model.workflows.decisions import starting
from horae.model.workflows.decisions.flow import BREAKPOINT, FAULT, PAUSED, Await, Deciding, Ended, StepRow
from horae.model.workflows.decisions.known import Known
from horae.model.workflows.decisions.starting import Launch
from horae.model.workflows.decisions.values import UNDO


class Launching(Known):
    """The part of a round that starts steps."""

    def _launch_ready(self) -> Deciding[None]:
        ready, self._ready = self._ready, []
        yield from self._know(ready)
        going = [name for name in ready if not self._hold(name)]
        yield from self._know((), {name for step in going for name in self._speaks(step)})
        undone = (name.removesuffix(UNDO) for name in going if name.endswith(UNDO))
        yield from self._know_items(frozenset(name for name in undone if self.plan.fans(name)))
        for name in going:
            self._launch(name)

    def _speaks(self, name: str) -> frozenset[str]:
        if name.endswith(UNDO):
            return self.plan.undoings[name.removesuffix(UNDO)].speaks
        return self.plan.nodes[name].speaks

    def _hold(self, name: str) -> bool:
        """Whether a step that may start stays where it is until somebody lets it go on."""
        reason = PAUSED if self.flow.paused else BREAKPOINT if name in self.flow.breakpoints else ""
        if reason:
            self._put(structs.replace(self._rows[name], state="held", reason=reason))
        return bool(reason)

    def _launch(self, name: str) -> None:
        row = self._rows[name]
        try:
            launch = self._starter.launch(name, row, self._rows, self.flow)
        except TemplateError as error:
            launch = Ended(step=name, state="failed", reason=FAULT, error=starting.fault(error))
        self._apply(structs.replace(row, reason="", began_at=self.now), launch)

    def _apply(self, row: StepRow, launch: Launch) -> None:
        if isinstance(launch, Ended):
            idle = row if launch.state != "skipped" else structs.replace(row, began_at=None)
            self._full.add(row.step)
            self._end(idle, launch.state, launch.result, launch.error, launch.reason)
            return
        self.flow = structs.replace(self.flow, open=self.flow.open + 1)
        if isinstance(launch, Await):
            self._put(structs.replace(row, state="waiting", wake_at=launch.wake_at))
            self._made.awaits.append(launch)
        else:
            total = len(launch.items) if launch.foreach else 0
            self._put(structs.replace(row, state="running", total=total))
            self._made.starts.append(launch)
