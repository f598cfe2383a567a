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
from horae.client.kernel.secrets import MasterKeyResource, SecretsResource
from horae.client.kernel.triggers import FiresResource, TriggersResource
from horae.client.local import chosen_namespace, resolve
from horae.client.loops import FORK_LOCK
from horae.client.options import BulkOptions, SubmitOptions
from horae.client.resources import AuditResource, ClockResource, DeadLettersResource, ServersResource, WorkersResource
from horae.client.submission_options import OF_MANY, OF_ONE, described
from horae.client.transport.calls import Caller, RequestRetryPolicy, Resource, path_of
from horae.client.transport.http import HttpClientTransport
from horae.client.transport.streamed import events
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
    """A client of a Horae server.

    Without arguments it connects to HORAE_URL or http://127.0.0.1:8420, with the key of HORAE_KEY or, for a server on
    this machine, the key in admin.key of the data folder. With a key for several namespaces, `namespace` or
    HORAE_NAMESPACE selects one. `patience` sets how long an unanswered request is repeated.
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
    master_key: MasterKeyResource
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
            with FORK_LOCK:
                from horae.client.sync import SyncClient

                self._sync = self._sync or SyncClient(self)
        return self._sync

    async def submit(self, job: str, params: Any = None, **options: Unpack[SubmitOptions]) -> ExecutionInfo:
        """Submit one execution of a job, which is given by name or id. The execution is on disk when this returns.

        With `key`, the execution is unique: while the key is taken, this returns the existing execution, marked
        `deduplicated`. Queues with the deadline policy order executions by `deadline`, or by `within`, the deadline as
        a span after the execution is due. See `jobs.trigger` for `interval`, `propagate` and `wait_for_dependencies`.
        """
        body = {"job": job, **described(options, OF_ONE, "submit(...)")}
        body |= {} if params is None else {"params": msgspec.Raw(encode(params))}
        return ExecutionInfo.of(await self._caller.post(path_of("executions"), body))

    async def submit_many(
        self, job: str, params: Iterable[Any], *, atomic: bool = False, **options: Unpack[BulkOptions]
    ) -> list[SubmittedItem]:
        """Submit an execution for each item of `params`, up to a thousand per request; return the results in order.

        The result of a refused item has an `error`; the other items are submitted in spite of it. With `atomic`, all
        items are accepted or none, in one request.
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
        """Create or change jobs, templates and calendars to match these documents. If one is refused, change nothing.

        The documents have the form of the REST API; their order does not matter. With `dry_run`, only report the
        changes.
        """
        body = {"calendars": list(calendars), "templates": list(templates), "jobs": list(jobs)}
        path = path_of("apply") + ("?dryRun=true" if dry_run else "")
        return page_of(AppliedDocument, await self._caller.post(path, body))

    async def stream(
        self, *topics: str, execution: str | None = None, every: Span | None = None
    ) -> AsyncIterator[StreamEvent]:
        """Yield events as they happen, until the connection ends.

        The events concern all objects, or the given topics (executions, jobs, workers, holds), or one execution with
        its log. Events are hints, and some may be missed: read the objects to get their present state. With `every`, a
        span, changes of state are only counted: after each span, one event `changes` has the number of changes to each
        state.
        """
        query = {"topics": ",".join(topics) or None, "execution": execution, "every": span(every)}
        async with self._caller.open(path_of("stream"), query, "text/event-stream") as opened:
            async for event in events(opened.chunks):
                document = msgspec.json.decode(event.data)
                yield StreamEvent.of({"kind": event.event, **document})

    async def overview(self, since: datetime | str | None = None, until: datetime | str | None = None) -> OverviewInfo:
        """Read the overview of a namespace.

        It has the work that waits and runs now, and the results of the last hour, or of the window from `since` to
        `until`.
        """
        return OverviewInfo.of(await self._caller.get(path_of("overview"), window(since, until)))

    async def backup(self) -> AsyncIterator[bytes]:
        """Yield a copy of the server's SQLite store as it is at one instant, piece by piece."""
        async with self._caller.open(path_of("backup"), None, "application/vnd.sqlite3", timeout=600.0) as opened:
            async for piece in opened.chunks:
                yield piece

    async def store(self) -> ApiDocument:
        """Read the facts about the server's store: kind, version, revision, settings."""
        return ApiDocument.of(await self._caller.get(path_of("store")))

    @property
    def place(self) -> str:
        """The URL of the server that answered last."""
        return self._caller.place

    async def health(self) -> HealthInfo:
        """Check that a server answers, and compare its clock with this machine's."""
        return await self._caller.health()

    async def ready(self) -> None:
        """Raise StoreUnavailable while the server cannot reach its store."""
        await self._caller.get("/readyz")

    async def close(self) -> None:
        """Close the connections."""
        await self._caller.close()

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


RESOURCES: Mapping[str, type[Resource]] = Client.__annotations__
