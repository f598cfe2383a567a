"""The messages between workers and servers: the bodies of the session routes (docs/worker-protocol.md).

Everything is JSON with camelCase names. Times are integer microseconds UTC by the server's clock; a worker measures its
offset from `now` in the answers and corrects the times that it sends. No decision depends on a worker's time.
"""

import re
from typing import Annotated, Literal
from uuid import UUID

from msgspec import Meta, Raw, Struct, field

from horae.env import Instant, Micros
from horae.model.base.duration import LONGEST
from horae.model.base.instant import EARLIEST, END_OF_RANGE

PROTOCOL = 2  # a server accepts this version and the one before it
FIRST_PROTOCOL = 1
CHANNELS = 8  # channels of a session; each has at most one unanswered exchange
MAX_EXCHANGE = 512 * 1024  # bytes of slices or outcomes in one exchange; more are left to the next exchange
MOST_CHILDREN = 10_000  # submissions in one call
MAX_INLINE_RESULT = 64 * 1024  # bytes; a larger result is stored as a blob
MAX_RESULT = 1024 * 1024  # bytes
MAX_PROGRESS = 1000  # characters of a message about progress, which lists show
MAX_CHECKPOINT = MAX_SIGNAL = 64 * 1024  # bytes
MAX_STEP_NAME = 512  # characters
MAX_ERROR_NAME, MAX_MESSAGE, MAX_TRACEBACK = 512, 16 * 1024, 64 * 1024  # characters of an error
MOST_ERROR_NAMES = 100
MAX_SIGNAL_NAME = 200
MAX_CALL = 200  # characters of the name of a call that submits executions
MOST_STEPS = 1024  # steps in one call
MOST_QUEUES = 1000  # queues that a worker serves
MOST_FUNCTIONS = 5000  # functions that a worker announces
MOST_LABELS = 64  # labels of a worker, and resources of a worker
LOG_LIMIT = 16 * 1024 * 1024  # bytes of an attempt's log, unless the server sets another limit

ABSENT = Raw()  # no value; it is falsy, and left out of messages

Count = Annotated[int, Meta(ge=0, le=2**31 - 1)]  # stored in 32 bits
Amount = Annotated[int, Meta(ge=0, le=2**53)]  # an amount of a resource
At = Annotated[Instant, Meta(ge=EARLIEST, lt=END_OF_RANGE)]  # a time from a worker: the years 1970 to 2200
Length = Annotated[Micros, Meta(ge=0, le=LONGEST)]  # a span from a worker: up to a hundred years

Name = Annotated[str, Meta(min_length=1, max_length=128)]  # the name of a queue, a label or a resource

OutcomeKind = Literal["success", "failed", "cancelled", "released", "suspended"]
RequestKind = Literal["cancel", "timeout", "preempt", "startTimeout", "heartbeatTimeout", "totalTimeout"]
FailureKind = Literal["error", "timeout", "lost", "platform"]
ReportedKind = Literal["error", "timeout", "platform"]  # only a server decides that a worker is lost
LogStream = Literal["stdout", "stderr", "log"]
# The names of steps that begin with "@": only Horae's own steps have such names.
OWN_STEPS = re.compile(r"@(checkpoint|sleep(#([2-9]|[1-9][0-9]+))?|wait:.+)", re.DOTALL)


class Wire(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The base of all bodies."""


class Function(Wire, frozen=True, kw_only=True):
    """A function that the worker has loaded; `params` is the JSON schema of its parameters, if known."""

    name: Annotated[str, Meta(min_length=1, max_length=512)]
    params: Raw = ABSENT


class Register(Wire, frozen=True, kw_only=True):
    """POST /api/v1/sessions: a worker process registers."""

    protocol: Annotated[Count, Meta(description=f"The version of the worker protocol: {PROTOCOL}.")]
    worker: Annotated[str, Meta(min_length=1, max_length=200)]  # the worker's own name, shown as workerId
    host: Annotated[str, Meta(max_length=255)] = ""
    pid: Count = 0
    version: Annotated[str, Meta(max_length=128)] = ""
    labels: Annotated[dict[Name, Annotated[str, Meta(max_length=256)]], Meta(max_length=MOST_LABELS)] = {}
    queues: Annotated[tuple[Name, ...], Meta(min_length=1, max_length=MOST_QUEUES)] = ("default",)
    # Weights of queues against each other; 1 unless given.
    weights: Annotated[dict[Name, Annotated[float, Meta(gt=0, le=1000)]], Meta(max_length=MOST_QUEUES)] = {}
    strict: bool = False  # serves its queues in order: the next only when the earlier ones are empty
    concurrency: Annotated[int, Meta(ge=1, le=100_000)] = 1  # its slots
    # Amounts of resources other than slots.
    resources: Annotated[dict[Name, Amount], Meta(max_length=MOST_LABELS)] = {}
    # Kinds of tasks that it runs besides functions.
    kinds: Annotated[tuple[Annotated[str, Meta(max_length=64)], ...], Meta(max_length=16)] = ("command", "http")
    functions: Annotated[list[Function], Meta(max_length=MOST_FUNCTIONS)] = []
    secrets: bool = False  # it accepts secrets, and redacts their values in everything it reports
    reattaches: bool = False  # it re-attaches its session after a failover of the store


class Registered(Wire, frozen=True, kw_only=True):
    """The answer: the session's id and timing."""

    session_id: UUID
    namespace: str
    session_timeout: Micros
    heartbeat: Micros  # the longest that an exchange may wait for work
    servers: list[str] = []
    now: Instant
    epoch: int = 1
    installation: UUID | None = None  # id of the server's installation; the worker sends it with every later call
    log_limit: Amount = LOG_LIMIT  # bytes of text that an attempt may write to its log


class Failure(Wire, frozen=True, kw_only=True):
    """The cause of a failed attempt."""

    type: str
    message: str = ""
    traceback: str = ""
    permanent: bool = False  # no retry will help
    retry_after: Length | None = None  # set by the job, instead of the policy's delay
    kind: FailureKind = "error"  # class of the failure, each with its own retry budget: model/definitions/retry.py
    names: tuple[str, ...] = ()  # qualified names of the error's class and its parents
    status: Count | None = None  # the status of an HTTP answer


class ReportedFailure(Failure, frozen=True, kw_only=True):
    """The cause of a failed attempt, as a worker reports it."""

    kind: ReportedKind = "error"


class Outcome(Wire, frozen=True, kw_only=True):
    """The result of the items `lo` to `hi - 1` of a slice that the worker held.

    `started_at` and `ended_at` have one entry per item, or one for all. `results` has one JSON value per item, or is
    empty when all are null.
    """

    parcel: UUID
    lo: Count
    hi: Count
    attempt: Count
    outcome: OutcomeKind
    started_at: list[At] = []
    ended_at: list[At] = []
    results: list[Raw] = []
    sensitive: bool = False  # the results are sealed before they are stored
    exit_code: Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)] | None = None
    error: ReportedFailure | None = None
    wake_at: At | None = None  # suspended: when to resume at the latest
    waits: list[str] = []  # suspended: the steps that wait for a signal


class Started(Wire, frozen=True, kw_only=True):
    """Items that have been running for a second."""

    parcel: UUID
    lo: Count
    hi: Count
    attempt: Count
    at: At


class Progress(Wire, frozen=True, kw_only=True):
    """The progress of a running item in percent, with a message."""

    parcel: UUID
    item: Count
    attempt: Count
    percent: Annotated[float, Meta(ge=0, le=100)] | None = None  # None: only a heartbeat
    message: str = ""  # cut at MAX_PROGRESS


class LogLines(Wire, frozen=True, kw_only=True):
    """Consecutive log lines of one attempt. `seq` is the number of the first line; known numbers are ignored.

    A line is (at, stream, text); streams are stdout, stderr and log. A worker sends the lines of an attempt in order:
    it sends the next lines, and the outcome, only after these lines were answered. `left_out` counts the lines and
    bytes before these lines that were not sent because of the limit. `open` are unfinished lines after these lines;
    they have no number, and the next message replaces them.
    """

    parcel: UUID
    item: Count
    attempt: Count
    seq: Count
    lines: list[tuple[At, LogStream, str]]
    left_out: tuple[Count, Amount] | None = None
    open: list[tuple[At, LogStream, str]] | None = None


class Exchange(Wire, frozen=True, kw_only=True):
    """POST /api/v1/sessions/{id}/exchange: a worker sends outcomes and its free capacity, and gets work.

    `n` counts 1, 2, ... on its channel. An unanswered exchange is repeated with the same n and body, at any server.
    `free` is the number of idle slots, `room` the idle amounts of other resources. `prefetch` is the number of items of
    a job with short executions that the worker takes beyond its idle slots.
    """

    channel: Annotated[int, Meta(ge=0, le=CHANNELS - 1)]
    n: Annotated[int, Meta(ge=1, le=2**62)]
    free: Count = 0
    room: dict[str, Amount] = {}
    prefetch: dict[UUID, Count] = {}
    wait: Length = 0  # how long the server may hold the answer while there is no work
    draining: bool = False
    outcomes: list[Outcome] = []
    started: list[Started] = []
    progress: list[Progress] = []
    logs: list[LogLines] = []


class Grant(Wire, frozen=True, kw_only=True):
    """Items `lo` to `hi - 1` of a parcel, which this session may now execute, in this attempt."""

    parcel: UUID
    lo: int
    hi: int
    job: UUID
    version: int
    attempt: int
    token: int  # epoch x 2^32 + attempt: the fencing token for user code
    token_text: str = ""  # the token in decimal digits, for languages in which JSON numbers are inexact doubles
    failures: int = 0
    due_at: Instant
    deadline: Instant | None = None
    priority: int = 4
    parent: UUID | None = None
    items: list[Raw]
    problem: str = ""  # why the server cannot provide the items; if set, the worker does not start them
    extras: Raw = ABSENT  # one object per item: trace, tags, fire instant, interval


class Request(Wire, frozen=True, kw_only=True):
    """A request to a running item, such as to cancel; it may be repeated until the attempt ends."""

    parcel: UUID
    item: Count
    attempt: Count
    kind: RequestKind


class Range(Wire, frozen=True, kw_only=True):
    """Items `lo` to `hi - 1` of a parcel at an attempt, which the session no longer holds or should hand back."""

    parcel: UUID
    lo: Count
    hi: Count
    attempt: Count


class Answer(Wire, frozen=True, kw_only=True):
    """The answer to an exchange: new grants, and requests to the worker.

    The server records each grant with the `channel` and `n` of the exchange.
    """

    slices: list[Grant] = []
    jobs: dict[str, Raw] = {}  # "jobId:version" -> the definition of each granted slice's job
    secrets: dict[str, str] = {}  # name -> value, of the secrets that the granted slices' jobs refer to
    secret_problems: dict[str, str] = {}  # name -> why it has no value; executions that need it do not start
    requests: list[Request] = []
    hand_back: list[Range] = []  # items to release if they have not started, because better ranked work waits
    ignored: list[Range] = []  # reported items that the session does not hold at that attempt
    servers: list[str] = []
    drain: bool = False  # a user asked this worker to drain
    now: Instant


class Reattach(Wire, frozen=True, kw_only=True):
    """POST /api/v1/sessions/{id}/reattach: a session continues after a failover of the store.

    The worker sends it when an answer has told it that the session is detached, and ignores the answers to exchanges
    that it sent before. It sends the unanswered exchanges again when this call is answered.
    """

    answered: Annotated[list[Annotated[int, Meta(ge=0, le=2**62)]], Meta(min_length=CHANNELS, max_length=CHANNELS)]
    # The number of the last answered exchange of each channel.
    held: list[Range] = []  # items that it was granted and whose outcome is in no answered exchange


class Reattached(Wire, frozen=True, kw_only=True):
    """The answer: the session is live again."""

    epoch: int  # the epoch of later grants
    stop: list[Range] = []  # held items that are not the session's any more: stop them after their grace time
    now: Instant


class Step(Wire, frozen=True, kw_only=True):
    """A finished step of a running item, and its result. A name identifies one step of the execution.

    Names that begin with `@` are those of Horae's own steps. The name `@checkpoint` is used many times, and only the
    newest checkpoint is stored.
    """

    parcel: UUID
    item: Count
    attempt: Count
    name: Annotated[str, Meta(min_length=1, max_length=MAX_STEP_NAME)]
    result: Raw = field(default_factory=lambda: Raw(b"null"))


class Remember(Wire, frozen=True, kw_only=True):
    """POST /api/v1/sessions/{id}/steps: store the results of steps before the code continues."""

    steps: Annotated[list[Step], Meta(min_length=1, max_length=MOST_STEPS)]


class StepRemembered(Wire, frozen=True, kw_only=True):
    """The answer for one step: it was stored as sent, or is `known`, and the `result` of an earlier call is valid."""

    known: bool = False
    result: Raw = ABSENT  # the result of a known step
    refused: bool = False  # this session does not hold the item at that attempt


class Remembered(Wire, frozen=True, kw_only=True):
    """The answers, in the order of the steps."""

    steps: list[StepRemembered]


class KnownSteps(Wire, frozen=True, kw_only=True):
    """GET /api/v1/sessions/{id}/steps: the results of an item's steps, by name; `next` requests the next page."""

    steps: dict[str, Raw]
    next: str | None = None


class Await(Wire, frozen=True, kw_only=True):
    """POST /api/v1/sessions/{id}/awaits: a step of a running item waits for a signal.

    The first call of a step sets the deadline; later calls do not change it.
    """

    parcel: UUID
    item: Count
    attempt: Count
    step: Annotated[str, Meta(min_length=1, max_length=MAX_STEP_NAME)]
    signal: Annotated[str, Meta(min_length=1, max_length=MAX_SIGNAL_NAME)]
    filter: str | None = None  # an expression about `signal`, which must be true
    timeout: Length | None = None


class Awaited(Wire, frozen=True, kw_only=True):
    """The answer: the step's result if the signal has arrived or the time is over, else the deadline.

    The result is stored as the results of other steps are. It is {"payload": ...}, or {"timedOut": true}.
    """

    result: Raw = ABSENT
    deadline: Instant | None = None
