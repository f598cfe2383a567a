"""`Inline(workflow)`: one execution of a workflow, run by the real engine in this process, on a clock that jumps over
waits.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from horae.client.views import ExecutionInfo

if TYPE_CHECKING:
    from horae.client.workflows.workflow import AppWorkflow
    from horae.testing.serving import Server


class WorkflowFailed(Exception):
    """An error for a workflow that did not succeed; `execution` has the details."""

    def __init__(self, execution: ExecutionInfo) -> None:
        super().__init__(execution.error_message or f"The workflow is {execution.status}.")
        self.execution = execution


class InlineWorkflow:
    """One execution of a workflow. Tests add its signals, events and approvals, in any order, before it runs."""

    def __init__(self, workflow: "AppWorkflow", /, *, secrets: Mapping[str, str] | None = None, **params: Any) -> None:
        self._workflow, self._params, self._secrets = workflow, params, secrets or {}
        self._signals: list[tuple[str, Any]] = []
        self._answers: dict[str, tuple[bool, str]] = {}
        self._events: list[tuple[str, Any]] = []
        self.execution: ExecutionInfo | None = None
        self.states: dict[str, str] = {}
        self.slept = 0.0

    def signal(self, name: str, payload: Any = None) -> None:
        """Send a signal; the execution receives it when a step waits for a signal with this name."""
        self._signals.append((name, payload))

    def event(self, name: str, payload: Any = None) -> None:
        """Send an event as soon as a step waits for an event with this name."""
        self._events.append((name, payload))

    def approve(self, step: str, comment: str = "") -> None:
        """Approve a step as soon as it waits for an approval."""
        self._answers[step] = True, comment

    def reject(self, step: str, comment: str = "") -> None:
        """Reject a step as soon as it waits for an approval."""
        self._answers[step] = False, comment

    async def finish(self) -> Any:
        """Run the workflow to its end and return its result.

        Raises WorkflowFailed, or Waits if a signal, an event or an approval for which it waits is missing. Afterwards
        `states` has the state of each step, and `slept` the seconds that passed on the workflow's clock.
        """
        from horae.testing.serving import server

        with server(self._workflow.app, secrets=self._secrets) as horae:
            try:
                return await self._finish(horae)
            finally:
                self.slept = horae.slept

    async def _finish(self, horae: "Server") -> Any:
        begun = await horae.client.submit(self._workflow.name, self._params)
        for name, payload in self._signals:
            await horae.client.executions.signal(begun.id, name, payload)

        async def give(execution: ExecutionInfo) -> bool:
            return await self._give(horae, execution)

        try:
            self.execution = await horae.finish(begun, give)
        finally:
            await self._look(horae, begun.id)
        if self.execution.status != "success":
            raise WorkflowFailed(self.execution)
        return await horae.client.executions.result(self.execution)

    async def _look(self, horae: "Server", execution_id: str) -> Sequence[Mapping[str, Any]]:
        nodes: Sequence[Mapping[str, Any]] = (await horae.client.executions.graph(execution_id))["nodes"]
        self.states = {node["step"]: node["status"] for node in nodes}
        return nodes

    async def _give(self, horae: "Server", execution: ExecutionInfo) -> bool:
        """Answer one approval or send one event for which a step waits; return False if there was nothing to do."""
        for wait in await horae.client.executions.approvals():
            answer = self._answers.pop(wait.raw["step"], None) if wait.raw["executionId"] == execution.id else None
            if answer is not None:
                executions = horae.client.executions
                act = executions.approve if answer[0] else executions.reject
                await act(execution.id, step=wait.raw["step"], comment=answer[1])
                return True
        nodes = await self._look(horae, execution.id)
        awaited = {node["waitsFor"]["name"] for node in nodes if node["kind"] == "event" and "waitsFor" in node}
        sent = next((event for event in self._events if event[0] in awaited), None)
        if sent is None:
            return False
        self._events.remove(sent)
        await horae.client.events.send(*sent)
        return True
