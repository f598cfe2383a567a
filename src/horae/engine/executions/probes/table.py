"""The table of probes: every gate of executions has one in `OF_EXECUTIONS`, every gate of jobs one in `OF_JOBS`."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from horae.engine.executions.probes import admission, order, placement, relations, times, triggers, workers
from horae.engine.executions.probes import admission as limits
from horae.engine.executions.probes.case import Case, ExecutionCase, Sources
from horae.model.executions.gates import Blocker

Probe = Callable[[Sources, ExecutionCase], Awaitable[Sequence[Blocker]]]
JobProbe = Callable[[Sources, Case], Awaitable[Sequence[Blocker]]]

OF_EXECUTIONS: Mapping[str, Probe] = {
    "delay": times.delay,
    "retry": times.retry,
    "sleep": times.sleep,
    "dependency": relations.dependency,
    "window": times.window,
    "limit": limits.limit,
    "sequence": limits.sequence,
    "rate": limits.rate,
    "overlap": relations.overlap,
    "paused": admission.paused,
    "workflow-paused": relations.workflow_paused,
    "circuit": admission.circuit,
    "queue-paused": admission.queue_paused,
    "held": admission.held,
    "queue-limit": limits.queue_limit,
    "namespace-limit": limits.namespace_limit,
    "no-worker": workers.no_worker,
    "no-key": workers.no_key,
    "suspect": workers.suspect,
    "preferred": placement.preferred,
    "spread": placement.spread,
    "busy": workers.busy,
    "room": placement.room,
    "reserved": order.reserved,
    "other-queues": order.other_queues,
    "share": order.share,
    "ahead": workers.ahead,
}
OF_JOBS: Mapping[str, JobProbe] = {
    "paused": admission.paused,
    "circuit": admission.circuit_of_job,
    "queue-paused": admission.queue_paused,
    "held": admission.held,
    "no-worker": workers.no_worker,
    "no-key": workers.no_key,
    "deleted": triggers.deleted,
    "no-trigger": triggers.no_trigger,
    "trigger-paused": triggers.trigger_paused,
    "trigger-ended": triggers.trigger_ended,
    "trigger-failing": triggers.trigger_failing,
    "calendar": triggers.calendar,
    "not-due": triggers.not_due,
    "no-event": triggers.no_event,
    "upstream": relations.upstream,
    "last-decision": triggers.last_decision,
}
