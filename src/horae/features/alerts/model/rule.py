"""Alert rules: conditions on jobs, queues or workers, which are the subjects of a rule.

Each kind of rule is a struct, whose annotations define its fields in requests. At most one alert is open for each rule
and subject. `features.alerts.engine` evaluates a rule and returns its findings: the subjects for which its condition
holds. `decide_changes` decides whether a finding opens an alert, sends a reminder or changes nothing.
"""

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, get_args

from msgspec import Struct

from horae.env import SECOND, Micros
from horae.features.alerts.model.rule_kinds import CHANNELS, LONGEST, MOST_IN_A_ROW, NOTICES, SUBJECTS, percent
from horae.model.admission.rate import Rate
from horae.model.base.duration import DAY, HOUR, MINUTE
from horae.model.fields.kinds import Choice, Duration, Flag, Integer, Name, Number, Text
from horae.model.fields.table import Field
from horae.model.fields.variants import Variants

Subject = Literal["job", "queue", "worker"]
Severity = Literal["info", "warning", "critical"]
RuleState = Literal["active", "paused"]
AlertState = Literal["firing", "recovered"]
NoticeKind = Literal["firing", "reminder", "recovered", "forgotten", "test"]
NoticeState = Literal["pending", "delivered", "failed"]
USUAL_RATE = Rate(20, HOUR, 20)
_WINDOW = Field(Duration(MINUTE, DAY), "The time over which executions are counted.", default=HOUR)
_MINIMUM = Field(Integer(1, 1_000_000), "With fewer executions in the window, the rule does not fire.", default=10)
_EXAMPLE = (
    'Write {"name": "nightly", "kind": "failures-in-a-row", "jobs": ["report"], "count": 3, "channels": ["ops"]}.'
)


def _after(text: str, usual: Micros, name: str = "", least: Micros = SECOND, most: Micros = DAY) -> Field:
    return Field(Duration(least, most), text, name=name, default=usual)


class Rule(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, tag_field="kind"):
    """A rule; here are the fields that all kinds have.

    Rules are stored as JSON with the names of the attributes in camelCase. A field that has a default here is left out
    while it has this default; all others are always stored.
    """

    subject: ClassVar[Subject]
    subjects: tuple[str, ...] = ("*",)  # names, or patterns with * and ?
    channels: Annotated[
        tuple[str, ...], Field(CHANNELS, "The channels to notify.", example=["ops"], flag="channel", metavar="NAME")
    ] = ()
    severity: Annotated[Severity, Field(Choice(get_args(Severity)), "The severity, shown in every notice.")] = "warning"
    description: Annotated[str, Field(Text(4096), "The purpose of the rule.")] = ""
    repeat_every: Annotated[
        Micros | None,
        Field(Duration(MINUTE, 30 * DAY), "The time between reminders, until the alert ends or is acknowledged."),
    ] = None
    at_most: Annotated[
        Rate,
        Field(
            NOTICES,
            "The maximum number of notices (about new alerts, and reminders) in a span of time, such as 5/10m.",
            name="maxNotices",
            metavar="N/SPAN",
        ),
    ] = USUAL_RATE
    recovery: Annotated[bool, Field(Flag(off="no-recovery"), "Send a notice when an alert ends.")] = True

    @property
    def kind(self) -> "Kind":
        return str(self.__struct_config__.tag)

    def covers(self, name: str) -> bool:
        """Return whether the rule is about the subject with this name."""
        return any(fnmatchcase(name, pattern) for pattern in self.subjects)


class JobRule(Rule, frozen=True, kw_only=True):
    """A rule about jobs."""

    subject = "job"
    subjects: Annotated[
        tuple[str, ...],
        Field(SUBJECTS, "The jobs to watch: names or patterns with * and ?.", name="jobs", flag="job", metavar="NAME"),
    ] = ("*",)


class WorkerRule(Rule, frozen=True, kw_only=True):
    """A rule about workers."""

    subject = "worker"
    subjects: Annotated[
        tuple[str, ...],
        Field(
            SUBJECTS,
            "The workers to watch: names or patterns with * and ?.",
            name="workers",
            flag="worker",
            metavar="NAME",
        ),
    ] = ("*",)


class QueueRule(Rule, frozen=True, kw_only=True):
    """A rule about queues."""

    subject = "queue"
    subjects: Annotated[
        tuple[str, ...],
        Field(
            SUBJECTS,
            "The queues to watch: names or patterns with * and ?.",
            name="queues",
            flag="queue",
            metavar="NAME",
        ),
    ] = ("*",)


class SuccessRate(JobRule, frozen=True, kw_only=True, tag="success-rate"):
    """Too few of a job's executions succeeded."""

    share: Annotated[
        int,
        Field(percent(1, 100), "The lowest accepted share of successes.", name="below", default=95, metavar="PERCENT"),
    ]
    window: Annotated[Micros, _WINDOW]
    minimum: Annotated[int, _MINIMUM]


class FailuresInARow(JobRule, frozen=True, kw_only=True, tag="failures-in-a-row"):
    """The newest executions of a job have failed, as many in a row as the rule says."""

    count: Annotated[int, Field(Integer(1, MOST_IN_A_ROW), "The number of failures in a row.", default=3)]


class RetryRate(JobRule, frozen=True, kw_only=True, tag="retry-rate"):
    """A job's executions were retried too often."""

    share: Annotated[
        int,
        Field(
            percent(0, 99),
            "The highest accepted ratio of retries to executions.",
            name="above",
            default=20,
            metavar="PERCENT",
        ),
    ] = 0
    window: Annotated[Micros, _WINDOW]
    minimum: Annotated[int, _MINIMUM]


class Overlong(JobRule, frozen=True, kw_only=True, tag="overlong"):
    """An execution has run for much longer than usual."""

    times: Annotated[
        float,
        Field(
            Number(1.1, 1000),
            "The longest accepted duration, as a multiple of the last week's 95th percentile.",
            default=3.0,
        ),
    ]
    after: Annotated[Micros, _after("A shorter duration is always accepted.", MINUTE, "minDuration")]


class LateWorker(WorkerRule, frozen=True, kw_only=True, tag="late-worker"):
    """A worker is silent, or was silent until it was lost."""

    after: Annotated[Micros, _after("The accepted silence.", 10 * SECOND)]


class Lag(JobRule, frozen=True, kw_only=True, tag="lag"):
    """A fire is late, or a trigger cannot fire at all."""

    after: Annotated[Micros, _after("The accepted delay of fires.", MINUTE)]


class QueueAge(QueueRule, frozen=True, kw_only=True, tag="queue-age"):
    """The next execution of a queue has been queued for a long time."""

    after: Annotated[Micros, _after("The accepted time in a queue.", 10 * MINUTE, most=LONGEST)]


class MissingSuccess(JobRule, frozen=True, kw_only=True, tag="missing-success"):
    """No execution of a job has succeeded for a long time, even if none was started: a dead man's switch."""

    after: Annotated[Micros, _after("The accepted time without a success.", DAY, "since", MINUTE, LONGEST)]


class DeadlineRisk(JobRule, frozen=True, kw_only=True, tag="deadline-risk"):
    """An execution will probably miss its deadline, or has missed it."""

    after: Annotated[
        Micros, _after("The required time between the estimated end and the deadline.", 0, "margin", 0)
    ] = 0


class WorkerLost(WorkerRule, frozen=True, kw_only=True, tag="worker-lost"):
    """A worker was lost and did not come back."""

    after: Annotated[
        Micros, _after("The alert ends after this time, even if the worker is not back.", HOUR, "within", MINUTE)
    ]


class CircuitOpen(JobRule, frozen=True, kw_only=True, tag="circuit-open"):
    """A circuit of a job is open or half-open."""


AnyRule = (
    SuccessRate
    | FailuresInARow
    | RetryRate
    | Overlong
    | LateWorker
    | Lag
    | QueueAge
    | MissingSuccess
    | DeadlineRisk
    | WorkerLost
    | CircuitOpen
)


class _Named(Struct):
    name: Annotated[str, Field(Name(), "The name of the rule.", example="nightly", flag="", sdk=False)]


SUBJECTS_OF: dict[str, Subject] = {str(one.__struct_config__.tag): one.subject for one in get_args(AnyRule)}
RULE = Variants(AnyRule, "A rule", "The condition that the rule checks.", _EXAMPLE, _Named)
if TYPE_CHECKING:
    Kind = str
else:
    Kind = Literal[tuple(RULE.tables)]
