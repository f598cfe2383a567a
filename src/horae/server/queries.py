"""What query strings may say; an unknown parameter is refused."""

from typing import Annotated, Literal
from uuid import UUID

from msgspec import Meta, Struct, field

from horae.model.log_level import Level
from horae.model.protocol import MAX_STEP_NAME
from horae.model.replay import ReplayState
from horae.server.bodies import When

Limit = Annotated[int, Meta(ge=1, le=1000, description="At most so many items: 1 to 1000.")]
Cursor = Annotated[str, Meta(max_length=512, description="`nextCursor` of the page before.")]
Text = Annotated[str, Meta(max_length=256)]


class Query(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The parameters of a read."""


class Nothing(Query, frozen=True, kw_only=True):
    """No parameters."""


class Paged(Query, frozen=True, kw_only=True):
    """A page of a list."""

    limit: Limit = 50
    cursor: Cursor | None = None


class JobList(Paged, frozen=True, kw_only=True):
    """Which jobs."""

    search: Annotated[Text, Meta(description="A part of the name, the description or a tag.")] | None = None
    prefix: Annotated[Text, Meta(description="How the name begins.")] | None = None
    state: Literal["active", "paused", "deleted"] | None = None
    tag: Annotated[Text, Meta(description='"name" or "name=value".')] | None = None
    queue: Text | None = None
    owner: Annotated[Text, Meta(description="Only the jobs that this workflow keeps for its steps.")] | None = None
    owned: Annotated[bool, Meta(description="With the jobs that workflows keep for their steps.")] = False
    statistics: Annotated[bool, Meta(description="With each job's newest executions, success rate and durations.")] = (
        False
    )


class EventList(Paged, frozen=True, kw_only=True):
    """Which events."""

    name: Annotated[Text, Meta(description="Only events of this name.")] | None = None


class TriggerList(Paged, frozen=True, kw_only=True):
    """Which triggers."""

    job: Annotated[Text, Meta(description="A job's name or id.")] | None = None
    state: Literal["active", "paused", "ended"] | None = None
    kind: Literal["cron", "interval", "once", "event", "webhook", "watch"] | None = None
    search: Annotated[Text, Meta(description="A part of the trigger's or the job's name.")] | None = None


class FireList(Paged, frozen=True, kw_only=True):
    """Which fires: in [from, to), by default from an hour ago to a day ahead; to a year if only `planned` ones."""

    from_: Annotated[When, Meta(description="Not before this.")] | None = field(default=None, name="from")
    to: Annotated[When, Meta(description="Before this.")] | None = None
    job: Annotated[Text, Meta(description="A job's name or id.")] | None = None
    trigger: Annotated[Text, Meta(description="A trigger's name.")] | None = None
    disposition: Annotated[Text, Meta(description="`fired`, `planned`, `skipped-overlap`, ...")] | None = None
    limit: Limit = 100


class FireCounting(Query, frozen=True, kw_only=True):
    """Which days, of which time zone: at most 62, or 8 by the hour."""

    from_: (
        Annotated[Text, Meta(description="The first day, as 2026-11-15, or the day of an instant; today.")] | None
    ) = field(default=None, name="from")
    to: Annotated[Text, Meta(description="The last day; the first one unless said.")] | None = None
    by: Literal["hour", "day"] = "day"
    timezone: Annotated[Text, Meta(description='An IANA name such as "Europe/Paris".')] = "UTC"
    job: Annotated[Text, Meta(description="A job's name or id.")] | None = None


class DryRun(Query, frozen=True, kw_only=True):
    """Whether it is done, or only told."""

    dry_run: Annotated[bool, Meta(description="Write nothing; say what would be written, or why it is refused.")] = (
        False
    )


class DeleteJob(Query, frozen=True, kw_only=True):
    """What becomes of a deleted job's executions."""

    queued: Literal["cancel", "finish"] = "cancel"
    running: Literal["cancel", "finish"] = "finish"
    force: Annotated[bool, Meta(description="Also if workflows run it.")] = False


Status = Literal["waiting", "queued", "running", "success", "failed", "cancelled", "skipped", "pending"]


class JobExecutions(Paged, frozen=True, kw_only=True):
    """Which executions of a job."""

    status: Annotated[Status, Meta(description="`pending` means waiting or queued.")] | None = None
    tag: Text | None = None
    worker: Text | None = None
    since: When | None = None
    until: When | None = None


class ExecutionList(JobExecutions, frozen=True, kw_only=True):
    """Which executions."""

    job: Annotated[Text, Meta(description="A job's name or id.")] | None = None
    queue: Text | None = None
    parent: Text | None = None


class ArchiveList(Paged, frozen=True, kw_only=True):
    """Which executions of the archive."""

    status: Literal["success", "failed", "cancelled", "skipped"] | None = None
    job: Annotated[Text, Meta(description="A job's name or id, as it was then.")] | None = None
    tag: Text | None = None
    since: When | None = None
    until: When | None = None


LineNumber = Annotated[int, Meta(ge=0, le=2**31 - 1)]
GREP = "Only lines with this text, `*` for anything; or that match the regular expression after `re:`."


class LogLinesOf(Query, frozen=True, kw_only=True):
    """Which log lines."""

    attempt: Annotated[int, Meta(ge=0, le=2**31 - 1)] | None = None
    grep: Annotated[str, Meta(min_length=1, max_length=500, description=GREP)] | None = None
    level: Annotated[Level, Meta(description="Only lines of this level, or worse.")] | None = None


class Logs(LogLinesOf, frozen=True, kw_only=True):
    """Which log lines, and from where on."""

    cursor: Cursor | None = None
    tail: Annotated[int, Meta(ge=1, le=10_000, description="Only the last lines: 1 to 10000.")] | None = None
    after: Annotated[LineNumber, Meta(description="Only lines behind the one of this number.")] | None = None
    before: Annotated[LineNumber, Meta(description="The last lines before the one of this number.")] | None = None
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 1000


class LogText(LogLinesOf, frozen=True, kw_only=True):
    """Which log lines, and how they look."""

    times: Annotated[bool, Meta(description="Each line with its time before it.")] = False


LetterState = Literal["open", "retried", "discarded", "all"]


class DeadLetterList(Paged, frozen=True, kw_only=True):
    """Which dead letters."""

    job: Text | None = None
    queue: Text | None = None
    error_type: Text | None = None
    reason: Text | None = None
    text: Annotated[Text, Meta(description="A part of the error's message.")] | None = None
    since: When | None = None
    until: When | None = None
    older_than: Annotated[Text, Meta(description="Made longer ago than this, as 7d.")] | None = None
    state: LetterState = "open"


class DeadLetterGroupsOf(Query, frozen=True, kw_only=True):
    """Which dead letters to count."""

    job: Text | None = None
    queue: Text | None = None
    error_type: Text | None = None
    reason: Text | None = None
    text: Text | None = None
    since: When | None = None
    until: When | None = None
    older_than: Text | None = None
    state: LetterState = "open"


class ReplayList(Paged, frozen=True, kw_only=True):
    """Which replays of dead letters."""

    state: ReplayState | None = None


class Item(Query, frozen=True, kw_only=True):
    """A running item."""

    parcel: Annotated[str, Meta(extra_json_schema={"format": "uuid"})]
    item: Annotated[int, Meta(ge=0, le=1023)]
    after: Annotated[str, Meta(max_length=MAX_STEP_NAME, description="Only steps behind this name.")] = ""


class HeldItem(Query, frozen=True, kw_only=True):
    """A running item as its session holds it."""

    parcel: UUID
    item: Annotated[int, Meta(ge=0, le=1023)]
    attempt: Annotated[int, Meta(ge=1, le=2**31 - 1)]


class ArtifactList(Paged, frozen=True, kw_only=True):
    """Which artifacts."""

    limit: Limit = 1000


class Topics(Query, frozen=True, kw_only=True):
    """Which events to follow; all of them when nothing is named."""

    topics: Annotated[
        list[Literal["executions", "steps", "jobs", "workers", "holds", "circuits", "rollouts", "alerts"]],
        Meta(description="Kinds of things, separated by commas."),
    ] = []
    every: (
        Annotated[str, Meta(max_length=20, description="Things are counted, and told so often: `100ms` to `1m`.")]
        | None
    ) = None
    execution: (
        Annotated[str, Meta(description="One, its steps and its log.", extra_json_schema={"format": "uuid"})] | None
    ) = None


class Window(Query, frozen=True, kw_only=True):
    """A window of the past."""

    from_: Annotated[When, Meta(description="Not before this.")] | None = field(default=None, name="from")
    to: Annotated[When, Meta(description="Before this; now unless said.")] | None = None


class Days(Query, frozen=True, kw_only=True):
    """Which days, of which time zone: at most 400."""

    from_: Annotated[Text, Meta(description="The first day, as 2026-11-15, or the day of an instant.")] | None = field(
        default=None, name="from"
    )
    to: Annotated[Text, Meta(description="The last day.")] | None = None
    timezone: Annotated[Text, Meta(description='An IANA name such as "Europe/Paris".')] = "UTC"


class UsageDays(Query, frozen=True, kw_only=True):
    """Which days, in UTC."""

    from_: Annotated[When, Meta(description="Not before the day of this.")] | None = field(default=None, name="from")
    to: Annotated[When, Meta(description="Up to the day before this ends.")] | None = None
