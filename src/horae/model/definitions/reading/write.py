"""A spec in the API's spelling."""

from collections.abc import Mapping
from typing import Any

from horae.model.admission.reading.circuit import render_circuit
from horae.model.admission.reading.limits import render_limits
from horae.model.admission.reading.placement import render_placement
from horae.model.base.duration import format_duration
from horae.model.definitions.job import Spec
from horae.model.definitions.reading.dependencies import render_dependency
from horae.model.definitions.reading.meeting import FIELDS as MEETINGS
from horae.model.definitions.reading.meeting import render_meeting
from horae.model.definitions.reading.retry import render_retry
from horae.model.definitions.reading.task import render_task
from horae.model.definitions.reading.timeouts import render_timeouts
from horae.model.tenancy.secret_refs import SCHEME


def render_definition(spec: Spec, names: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Every field but the absent tasks; `names` turns ids of dependencies into the names people know."""
    known = names or {}
    kind, task = render_task(spec.task, known)
    return {
        "name": spec.name,
        "description": spec.description,
        "schedule": spec.schedule,
        "triggers": list(spec.triggers),
        kind: task,
        "params": spec.params,
        "schema": spec.schema,
        "retries": spec.retry.retries,
        "retry": render_retry(spec.retry),
        "timeout": None if spec.timeout is None else format_duration(spec.timeout),
        "timeouts": render_timeouts(spec.timeouts, spec.retry.within),
        "pauseAfter": spec.pause_after,
        "within": None if spec.within is None else format_duration(spec.within),
        "grace": format_duration(spec.grace),
        "priority": spec.priority,
        "queue": spec.queue,
        "interruptible": spec.interruptible,
        "preemptible": spec.preemptible,
        "preempts": spec.preempts,
        "sensitive": spec.sensitive,
        "durable": spec.durable,
        **render_placement(spec),
        "dependencies": [render_dependency(known.get(id, id), id, spec.conditions) for id in spec.dependencies],
        "dependencyTimeout": format_duration(spec.dependency_timeout),
        "onDependencyTimeout": spec.on_dependency_timeout,
        "tags": spec.tags,
        "env": spec.env,
        "secrets": [name.removeprefix(SCHEME) for name in spec.secrets],
        "delivery": spec.delivery,
        "keyFor": format_duration(spec.key_for),
        **render_limits(spec.limit, spec.limits, spec.sequence),
        **{name: render_meeting(getattr(spec, name)) for name in MEETINGS},
        "circuit": render_circuit(spec.circuit),
        **({} if spec.made is None else {"template": spec.made.name, "with": spec.made.values}),
    }
