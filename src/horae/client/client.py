"""The client of a Horae server: the REST API as Python, asynchronous here and synchronous through `.sync`."""

from collections.abc import AsyncIterator, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Unpack

import msgspec

from horae.client.bulk import submit_many
from horae.client.encode import encode, span
from horae.client.kernel.calendars import CalendarsResource
from horae.client.kernel.circuits import CircuitsResource
from horae.client.kernel.executions import ExecutionsResource
from horae.client.kernel.jobs import JobsResource
from horae.client.kernel.keys import KeysResource
from horae.client.kernel.namespaces import NamespacesResource
from horae.client.kernel.queues import QueuesResource
from horae.client.kernel.secrets import SecretsResource
from horae.client.kernel.triggers import FiresResource, TriggersResource
from horae.client.local import chosen_namespace, resolve
from horae.client.loops import NO_FORK
from horae.client.options import BulkOptions, SubmitOptions
from horae.client.resources import AuditResource, ClockResource, DeadLettersResource, ServersResource, WorkersResource
from horae.client.sse import events
from horae.client.submission import OF_MANY, OF_ONE, described
from horae.client.transport.calls import Caller, RequestRetryPolicy, Resource, path_of
from horae.client.transport.http import HttpClientTransport
from horae.client.transport.transport import ClientTransport
from horae.client.views import (
    ApiDocument,
    AppliedDocument,
    ExecutionInfo,
    HealthInfo,
    StreamEvent,
    SubmittedItem,
    page_of,
)
from horae.env import Env, system_env
from horae.features.alerts.client import AlertsResource
from horae.features.backfills.client import BackfillsResource
from horae.features.erasure.client import ErasuresResource
from horae.features.events.client import EventsResource
from horae.features.rollouts.client import RolloutsResource
from horae.features.statistics.client import OverviewInfo, window
from horae.features.templates.client import TemplatesResource
from horae.features.users.client import UsersResource
from horae.model.executions.job_exceptions import Span

if TYPE_CHECKING:
    from horae.client.sync import SyncClient


class Client:
    """Talks to a Horae server.

    Without arguments it goes where HORAE_URL says, or to http://127.0.0.1:8420, with the key of HORAE_KEY or, for a
    server on this machine, the one in admin.key of the data folder. A key that may use several namespaces is used in
    `namespace`, or HORAE_NAMESPACE.
    """

    jobs: JobsResource
    triggers: TriggersResource
    fires: FiresResource
    calendars: CalendarsResource
    backfills: BackfillsResource
    executions: ExecutionsResource
    erasures: ErasuresResource
    events: EventsResource
    dlq: DeadLettersResource
    workers: WorkersResource
    keys: KeysResource
    users: UsersResource
    secrets: SecretsResource
    circuits: CircuitsResource
    alerts: AlertsResource
    rollouts: RolloutsResource
    templates: TemplatesResource
    queues: QueuesResource
    namespaces: NamespacesResource
    servers: ServersResource
    clock: ClockResource
    audit: AuditResource

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        namespace: str | None = None,
        transport: ClientTransport | None = None,
        env: Env | None = None,
        patience: RequestRetryPolicy | None = None,
    ) -> None:
        urls, found = ([], key or "") if transport else resolve(url, key)
        self._env = env or system_env()
        self._sync: SyncClient | None = None
        chosen = namespace or "" if transport else chosen_namespace(namespace)
        self._caller = Caller(
            transport or HttpClientTransport(urls), found, self._env, patience or RequestRetryPolicy(), chosen
        )
        for name, kind in RESOURCES.items():
            setattr(self, name, kind(self._caller))

    @property
    def sync(self) -> "SyncClient":
        """The same client for code without an event loop: every call blocks until it is done."""
        if self._sync is None:
            with NO_FORK:
                from horae.client.sync import SyncClient

                self._sync = self._sync or SyncClient(self)
        return self._sync

    async def submit(self, job: str, params: Any = None, **options: Unpack[SubmitOptions]) -> ExecutionInfo:
        """Ask for one execution of a job, by name or id. It is on disk when this returns.

        `key` makes it unique: while the key is taken, the same execution is answered, marked `deduplicated`. Queues by
        deadline order by `deadline`, or by `within` a span. The last three are as in `jobs.trigger`.
        """
        body = {"job": job, **described(options, OF_ONE, "submit(...)")}
        body |= {} if params is None else {"params": msgspec.Raw(encode(params))}
        return ExecutionInfo.of(await self._caller.post(path_of("executions"), body))

    async def submit_many(
        self, job: str, params: Iterable[Any], *, atomic: bool = False, **options: Unpack[BulkOptions]
    ) -> list[SubmittedItem]:
        """Ask for an execution for each of `params`, in order, a thousand a request.

        Refused items carry their `error` and do not hold up the others; `atomic` takes all or none, in one request.
        """
        envelope = {"job": job, **described(options, OF_MANY, "submit_many(...)")}
        return await submit_many(self._caller, envelope, params, atomic=atomic)

    async def apply(
        self,
        *,
        jobs: Iterable[Mapping[str, Any]] = (),
        templates: Iterable[Mapping[str, Any]] = (),
        calendars: Iterable[Mapping[str, Any]] = (),
        dry_run: bool = False,
    ) -> list[AppliedDocument]:
        """Make all of these be as the documents say, as the API spells them, or change nothing.

        Their order does not matter. With `dry_run`, only tell what would change.
        """
        body = {"calendars": list(calendars), "templates": list(templates), "jobs": list(jobs)}
        path = path_of("apply") + ("?dryRun=true" if dry_run else "")
        return page_of(AppliedDocument, await self._caller.post(path, body))

    async def stream(
        self, *topics: str, execution: str | None = None, every: Span | None = None
    ) -> AsyncIterator[StreamEvent]:
        """Events as they happen, until the connection ends: of all things, of topics (executions, jobs, workers,
        holds), or of one execution with its log. They are hints: what was missed is found by reading. With `every`,
        things are counted: so often, an event `changes` tells how many came to be in each state.
        """
        query = {"topics": ",".join(topics) or None, "execution": execution, "every": span(every)}
        async with self._caller.open(path_of("stream"), query, "text/event-stream") as opened:
            async for event in events(opened.chunks):
                document = msgspec.json.decode(event.data)
                yield StreamEvent.of({"kind": event.event, **document})

    async def overview(self, since: datetime | str | None = None, until: datetime | str | None = None) -> OverviewInfo:
        """A namespace at a glance: what waits and runs now, and what happened in the last hour or another window."""
        return OverviewInfo.of(await self._caller.get(path_of("overview"), window(since, until)))

    async def backup(self) -> AsyncIterator[bytes]:
        """A copy of the server's SQLite store as it is at one instant, piece by piece."""
        async with self._caller.open(path_of("backup"), None, "application/vnd.sqlite3") as opened:
            async for piece in opened.chunks:
                yield piece

    async def store(self) -> ApiDocument:
        """What the server's store says of itself: kind, version, revision, settings."""
        return ApiDocument.of(await self._caller.get(path_of("store")))

    @property
    def place(self) -> str:
        """The URL of the server that answered last."""
        return self._caller.place

    async def health(self) -> HealthInfo:
        """Whether a server answers, and how its clock stands to this one."""
        return await self._caller.health()

    async def ready(self) -> None:
        """Raises StoreUnavailable while the server cannot reach its store."""
        await self._caller.get("/readyz")

    async def close(self) -> None:
        """Let go of connections."""
        await self._caller.close()

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


RESOURCES: Mapping[str, type[Resource]] = Client.__annotations__
