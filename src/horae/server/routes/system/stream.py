"""The stream of events."""

from typing import TYPE_CHECKING, Annotated, Literal
from uuid import UUID

from msgspec import Meta, field

from horae.env import SECOND
from horae.errors import BadInput, Forbidden, Gone, HoraeError, NotFound
from horae.feature import installed, switched_off
from horae.model.base.duration import parse_duration
from horae.server.access import VIEW
from horae.server.auth import authenticate
from horae.server.call import ApiCall
from horae.server.reading.queries import Query
from horae.server.reply import Response
from horae.server.route import API, get
from horae.server.scopes import Arguments, check_executions
from horae.server.streaming.event_feeds import StreamFilter
from horae.server.streaming.stream import EventStream, EventStreams

KERNEL = {
    "executions": "execution",
    "steps": "step",
    "jobs": "job",
    "workers": "worker",
    "holds": "hold",
    "circuits": "circuit",
}
KINDS = KERNEL | {topic: kind for feature in installed() for topic, kind in feature.topics}
OF_FEATURES = {topic: feature.name for feature in installed() for topic, _ in feature.topics}
if TYPE_CHECKING:
    Topic = str
else:
    Topic = Literal[tuple(KINDS)]


class StreamQuery(Query, frozen=True, kw_only=True):
    """The events to follow; all of them by default."""

    topics: Annotated[
        list[Topic],
        Meta(description="The kinds of objects to follow, separated by commas."),
    ] = field(default_factory=list)
    every: Annotated[str, Meta(max_length=20, description="Send counts at this interval: `100ms` to `1m`.")] | None = (
        None
    )
    execution: (
        Annotated[
            str, Meta(description="One execution, with its steps and its log.", extra_json_schema={"format": "uuid"})
        ]
        | None
    ) = None


# Microseconds between events of counts. A stream with another interval gets the next shorter one, so that few feeds
# serve many streams.
PACES = tuple(tenths * SECOND // 10 for tenths in (1, 2, 5, 10, 20, 50, 100, 200, 300, 600))
LEAST, MOST = PACES[0], PACES[-1]


async def by_followed_execution(call: ApiCall, arguments: Arguments) -> None:
    """Check the job of `?execution=`."""
    query: StreamQuery = arguments["query"]
    if query.execution is None or query.topics:
        raise Forbidden(
            "This credential may not follow all events.",
            "Follow one execution: ?execution=ID, without topics.",
        )
    await check_executions(call, [query.execution])


@get(
    f"{API}/stream", "stream.follow", str,
    access=VIEW, scope=by_followed_execution, media="text/event-stream", refuses=(NotFound, Gone),
)  # fmt: skip
async def follow(call: ApiCall, query: StreamQuery) -> Response:
    """Follow changes as server-sent events.

    An event means that a thing is now in a state: `{"kind", "id", "state", "at"}`. Events are hints: `missed` means
    that some were left out. After `missed` or a broken connection, a client reads its data again. With `every`, changes
    are counted instead, and the counts are sent at this interval.
    """

    async def admitted() -> bool:
        try:
            return (await authenticate(call.node.tenancy.keys, "GET", call.headers)).namespace == call.namespace
        except HoraeError:
            return False

    for topic in query.topics:
        if topic in OF_FEATURES and not call.node.has(OF_FEATURES[topic]):
            raise switched_off(OF_FEATURES[topic])
    streams: EventStreams = call.scope["app"].streams
    streams.refuse_more(call.namespace)
    asked = filter_of(query)
    if asked.execution is not None:
        await call.node.work.executions.find(call.namespace, asked.execution)
    return EventStream(streams, call.namespace, asked, admitted)


def filter_of(query: StreamQuery) -> StreamFilter:
    """Return the filter of a stream."""
    every = 0 if query.every is None else parse_duration(query.every, field="every")
    if query.every is not None and not LEAST <= every <= MOST:
        raise BadInput(f"every cannot be {query.every}.", "Use a value from 100ms to 1m.", field="every")
    every = max((pace for pace in PACES if pace <= every), default=0)
    if query.execution is None:
        return StreamFilter(frozenset(KINDS[topic] for topic in query.topics or KINDS), None, every)
    try:
        execution = UUID(query.execution)
    except ValueError:
        remedy = "Send an executionId."
        raise BadInput(f'execution "{query.execution[:60]}" is not an id.', remedy, field="execution") from None
    return StreamFilter(frozenset(KINDS[topic] for topic in query.topics), execution, every)
