"""What answers say beyond `model`: workers, keys, servers, queues, receipts and who one is."""

from typing import Annotated, Any
from uuid import UUID

from msgspec import UNSET, Meta, UnsetType

from horae.engine.workers import Status, Worker
from horae.env import Instant
from horae.model.hold_view import HoldView
from horae.model.instant import format_instant
from horae.model.principal import Principal
from horae.model.sealed_view import SealedView
from horae.model.view import Time, View, shown_time
from horae.store.checkup import Facts
from horae.store.moves.keys import StoredKey
from horae.store.moves.sessions import Server


class Accepted(View, frozen=True, kw_only=True):
    """An execution that was accepted; `deduplicated` says that its key stood for this one already.

    `cached` says that the execution ended before, and its `result` answers; `batched`, that it takes in this submission
    as the item at `index`.
    `warning` is there when it needs what no worker ever had.
    """

    execution_id: UUID
    status: str
    deduplicated: bool
    cached: bool | UnsetType = UNSET
    result: Any | UnsetType = UNSET
    batched: bool | UnsetType = UNSET
    index: int | UnsetType = UNSET
    warning: str | UnsetType = UNSET


class Triggered(Accepted, frozen=True, kw_only=True):
    """A job that was triggered; `fires` names the jobs that its end may start, `note` says what of that is so."""

    fires: tuple[str, ...] = ()
    note: str | None = None


class Forgotten(View, frozen=True, kw_only=True):
    """How many remembered results were forgotten."""

    forgotten: int


class BulkItem(View, frozen=True, kw_only=True):
    """What became of one item: an execution, or the problem for which it was refused."""

    execution_id: UUID | UnsetType = UNSET
    status: str | UnsetType = UNSET
    deduplicated: bool | UnsetType = UNSET
    cached: bool | UnsetType = UNSET
    batched: bool | UnsetType = UNSET
    index: int | UnsetType = UNSET
    error: dict[str, Any] | UnsetType = UNSET


class BulkAccepted(View, frozen=True, kw_only=True):
    """What became of each item, in their order; `warnings` is there when jobs of them need what no worker ever had."""

    items: list[BulkItem]
    accepted: int
    refused: int
    warnings: list[str] | UnsetType = UNSET


class WorkerView(View, frozen=True, kw_only=True):
    """A process that executes.

    `capacity` is its slots, `running` the executions it holds; `used` says how many `slots` and how much of its
    `resources` these take. Its labels include its own: `worker` and `host`.
    """

    worker_id: str
    session_id: UUID
    host: str
    pid: int
    version: str
    labels: dict[str, str]
    queues: list[str]
    capacity: int
    running: int
    resources: dict[str, int]
    used: dict[str, int]
    jobs: list[str]
    started_at: Time
    last_heartbeat: Time
    status: Status

    @classmethod
    def of(cls, worker: Worker) -> "WorkerView":
        return cls(
            worker_id=worker.worker, session_id=worker.session, host=worker.host, pid=worker.pid,
            version=worker.version, labels=worker.labels, queues=list(worker.queues), capacity=worker.capacity,
            running=worker.running, resources=worker.resources, used=worker.used, jobs=list(worker.jobs),
            started_at=format_instant(worker.started_at), last_heartbeat=format_instant(worker.last_seen),
            status=worker.status,
        )  # fmt: skip


class KeyView(View, frozen=True, kw_only=True):
    """A key; `key` is its text, told once, when it is made."""

    key_id: str
    name: str
    namespace: str
    role: str
    permissions: Annotated[tuple[str, ...], Meta(description="Granted beyond its role.")] = ()
    queues: Annotated[tuple[str, ...], Meta(description="The only ones it is for; empty: all.")] = ()
    jobs: Annotated[tuple[str, ...], Meta(description="Patterns of the only jobs it is for; empty: all.")] = ()
    rate: Annotated[str | None, Meta(description="How often it may ask each server.")] = None
    created_at: Time
    expires_at: Time | None = None
    last_used_at: Time | None = None
    revoked_at: Time | None = None
    made_by: Annotated[str | None, Meta(description="The key that made it.")] = None
    replaced_by: Annotated[str | None, Meta(description="The key that it was rotated to.")] = None
    key: str | UnsetType = UNSET

    @classmethod
    def of(cls, stored: StoredKey, namespace: str, key: str | UnsetType = UNSET) -> "KeyView":
        grant = stored.grant
        return cls(
            key_id=stored.id, name=stored.name, namespace=namespace, role=grant.role, permissions=grant.permissions,
            queues=grant.queues, jobs=grant.jobs, rate=stored.rate, created_at=format_instant(stored.created_at),
            expires_at=shown_time(stored.expires_at), last_used_at=shown_time(stored.last_used_at),
            revoked_at=shown_time(stored.revoked_at), made_by=grant.made_by, replaced_by=stored.replaced_by, key=key,
        )  # fmt: skip


class ServerView(View, frozen=True, kw_only=True):
    """A server of this installation."""

    server_id: UUID
    url: str
    host: str
    pid: int
    version: str
    parts: Annotated[tuple[str, ...], Meta(description="What it runs: api, gateway, scheduler.")]
    started_at: Time
    last_heartbeat: Time

    @classmethod
    def of(cls, server: Server) -> "ServerView":
        return cls(
            server_id=server.id, url=server.url, host=server.host, pid=server.pid, version=server.version,
            parts=server.parts, started_at=format_instant(server.started_at),
            last_heartbeat=format_instant(server.last_seen),
        )  # fmt: skip


class LaneView(View, frozen=True, kw_only=True):
    """A part of a queue that every claim treats alike; `queued` executions wait in it."""

    needs: list[str]
    share: str
    queued: int


class QueueView(View, frozen=True, kw_only=True):
    """A named queue; its `lanes` are those with most in them, a hundred at most.

    Its `state` is active; paused until it is resumed; held while something of `holds` keeps it from starting anything;
    or draining, when it accepts nothing new.
    """

    name: str
    policy: Annotated[dict[str, Any], Meta(description="Its kind, and what that takes.")]
    default: Annotated[bool, Meta(description="Jobs that name no queue go here.")] = False
    max_queued: Annotated[int, Meta(description="How many executions it takes.")] | None = None
    preempts: Annotated[bool, Meta(description="Whether what waits here takes the place of preemptible work.")] = False
    concurrency: Annotated[int | None, Meta(description="How many run at once.")] = None
    rate: Annotated[str | None, Meta(description="How often they start.")] = None
    burst: int | None = None
    sequence: Annotated[bool, Meta(description="They run one at a time, in order.")] = False
    state: str
    queued: int
    running: int
    lanes: list[LaneView]
    holds: list[HoldView]


class PurgedView(View, frozen=True, kw_only=True):
    """How many executions were cancelled."""

    cancelled: int


class Me(View, frozen=True, kw_only=True):
    """Who this credential is; a browser also gets the token its writes must show."""

    key_id: str
    name: str
    namespace: str
    role: str
    permissions: Annotated[tuple[str, ...], Meta(description="In effect: those that its role brings included.")] = ()
    queues: Annotated[tuple[str, ...], Meta(description="The only ones it is for; empty: all.")] = ()
    jobs: Annotated[tuple[str, ...], Meta(description="Patterns of the only jobs it is for; empty: all.")] = ()
    namespaces: Annotated[tuple[str, ...], Meta(description="A person's own, to choose from.")] = ()
    csrf: str | None = None

    @classmethod
    def of(cls, who: Principal, namespaces: tuple[str, ...] = ()) -> "Me":
        return cls(
            key_id=who.key, name=who.name, namespace=who.namespace_name, role=who.role,
            permissions=tuple(sorted(who.permissions)), queues=who.queues, jobs=who.jobs, csrf=who.csrf,
            namespaces=namespaces,
        )  # fmt: skip


class SignInCode(View, frozen=True, kw_only=True):
    """A code that signs one browser in; it is told this once."""

    code: str
    expires_at: Time


class TroubleView(View, frozen=True, kw_only=True):
    """Why something cannot be done, and since when."""

    problem: str
    since: Time


class StoreView(View, frozen=True, kw_only=True):
    """What the store says of itself; `revision` is its tables', `newest` the one this server knows.

    `archive` says why nothing can be archived, and is null while nothing is wrong.
    """

    kind: str
    version: str
    revision: str | None
    newest: str
    settings: dict[str, str]
    free_bytes: int | None
    sealed: SealedView
    archive: TroubleView | None = None

    @classmethod
    def of(cls, facts: Facts, sealed: SealedView, trouble: tuple[str, Instant] | None = None) -> "StoreView":
        return cls(
            kind=facts.dialect,
            version=facts.product,
            revision=facts.version,
            newest=facts.newest,
            settings=facts.settings,
            free_bytes=facts.free,
            sealed=sealed,
            archive=None if trouble is None else TroubleView(problem=trouble[0], since=format_instant(trouble[1])),
        )


class Health(View, frozen=True, kw_only=True):
    """How the server is; `note` tells what it does not do, though it answers."""

    status: str
    version: str
    note: str | None = None
