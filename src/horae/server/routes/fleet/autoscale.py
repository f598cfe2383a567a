"""Autoscaling: the number of workers that a queue needs, for tools that start and stop workers."""

from typing import Annotated

from msgspec import Meta

from horae.errors import BadInput, NotFound
from horae.model.base.duration import format_duration, parse_duration
from horae.model.base.view import View
from horae.model.fleet.autoscale import HEADROOM
from horae.server.access import VIEW
from horae.server.call import ApiCall
from horae.server.reading.bodies import DurationText
from horae.server.reading.queries import Query
from horae.server.reply import Response, ok
from horae.server.route import API, get
from horae.server.scopes import by_queue

MOST_WAIT = 86_400_000_000  # microseconds: a day


class AutoscaleQuery(Query, frozen=True, kw_only=True):
    """The target wait, and the size of a worker."""

    target_wait: Annotated[DurationText, Meta(description="The time that an execution may wait, such as 5s.")] = "5s"
    slots: (
        Annotated[int, Meta(ge=1, le=100_000, description="Slots per worker; the mean of present workers by default.")]
        | None
    ) = None


class AutoscaleView(View, frozen=True, kw_only=True):
    """The load of a queue, and the workers that it needs. Times are in seconds, rates in executions per second."""

    queue: str
    backlog: Annotated[int, Meta(description="Queued executions; at most 100,000 slices are counted.")]
    oldest_age: Annotated[float, Meta(description="The time for which the oldest queued execution has been queued.")]
    running: int
    arrival_rate: Annotated[
        float, Meta(description="The rate of arrivals since an earlier request, at most two minutes ago.")
    ]
    service_rate: Annotated[
        float, Meta(description="The rate at which executions end, in this minute and the previous minute.")
    ]
    duration: Annotated[float | None, Meta(description="The mean duration of an execution; null if unknown.")] = None
    utilisation: Annotated[float, Meta(description="The used share of the workers' slots, 0 to 1.")]
    workers: Annotated[int, Meta(description="Workers that serve the queue and do not drain.")]
    slots: Annotated[int, Meta(description="Total slots of these workers.")]
    target_wait: str
    desired_workers: Annotated[
        int,
        Meta(
            description="Workers that start the backlog and all arrivals within the target wait, and in the long run"
            f" use at most {HEADROOM:.0%} of their slots."
        ),
    ]


@get(
    f"{API}/autoscale/queues/{{queue}}", "autoscale.queue", AutoscaleView,
    access=VIEW, scope=by_queue, refuses=(NotFound, BadInput),
)  # fmt: skip
async def autoscale_queue(call: ApiCall, query: AutoscaleQuery) -> Response:
    """Read the load of a queue, and the number of workers for a target wait."""
    wait = parse_duration(query.target_wait, field="targetWait")
    if not 1000 <= wait <= MOST_WAIT:
        raise BadInput(f"targetWait cannot be {query.target_wait}.", "Use a value from 1ms to 1d.", field="targetWait")
    advice = await call.node.fleet.autoscale.advise(call.namespace, call.path("queue"), wait, query.slots)
    signals = advice.signals
    return ok(
        AutoscaleView(
            queue=advice.queue,
            backlog=signals.backlog,
            oldest_age=round(signals.oldest_age, 3),
            running=signals.running,
            arrival_rate=round(signals.arrival_rate, 4),
            service_rate=round(signals.service_rate, 4),
            duration=None if signals.duration is None else round(signals.duration, 6),
            utilisation=round(signals.utilisation, 4),
            workers=signals.workers,
            slots=signals.slots,
            target_wait=format_duration(advice.target_wait),
            desired_workers=advice.desired,
        )
    )
