"""Keyword arguments of the client. `python -m tools.sdk` writes this module from the tables of the fields."""

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

from horae.model.executions.job_exceptions import Span


class AlertRuleFields(TypedDict, total=False):
    """The fields of a rule; each kind has its own fields."""

    kind: (
        Literal[
            "success-rate",
            "failures-in-a-row",
            "retry-rate",
            "overlong",
            "late-worker",
            "lag",
            "queue-age",
            "missing-success",
            "deadline-risk",
            "worker-lost",
            "circuit-open",
        ]
        | None
    )
    """The condition that the rule checks."""
    jobs: str | Sequence[str] | None
    """The jobs to watch: names or patterns with * and ?."""
    channels: str | Sequence[str] | None
    """The channels to notify."""
    severity: Literal["info", "warning", "critical"] | None
    """The severity, shown in every notice."""
    description: str | None
    """The purpose of the rule."""
    repeat_every: Span | None
    """The time between reminders, until the alert ends or is acknowledged."""
    max_notices: str | None
    """The maximum number of notices (about new alerts, and reminders) in a span of time, such as 5/10m."""
    recovery: bool | None
    """Send a notice when an alert ends."""
    below: str | None
    """success-rate: the lowest accepted share of successes."""
    window: Span | None
    """success-rate, retry-rate: the time over which executions are counted."""
    minimum: int | None
    """success-rate, retry-rate: with fewer executions in the window, the rule does not fire."""
    count: int | None
    """failures-in-a-row: the number of failures in a row."""
    above: str | None
    """retry-rate: the highest accepted ratio of retries to executions."""
    times: float | None
    """overlong: the longest accepted duration, as a multiple of the last week's 95th percentile."""
    min_duration: Span | None
    """overlong: a shorter duration is always accepted."""
    workers: str | Sequence[str] | None
    """late-worker, worker-lost: the workers to watch: names or patterns with * and ?."""
    after: Span | None
    """late-worker: the accepted silence. lag: the accepted delay of fires. queue-age: the accepted time in a queue."""
    queues: str | Sequence[str] | None
    """queue-age: the queues to watch: names or patterns with * and ?."""
    since: Span | None
    """missing-success: the accepted time without a success."""
    margin: Span | None
    """deadline-risk: the required time between the estimated end and the deadline."""
    within: Span | None
    """worker-lost: the alert ends after this time, even if the worker is not back."""


class AlertChannelFields(TypedDict, total=False):
    """The fields of a channel; secret fields that are not given stay unchanged."""

    kind: Literal["webhook", "email", "apprise"] | None
    """The kind of channel."""
    description: str | None
    """A description of the receivers."""
    url: str | None
    """webhook: the URL of the receiver."""
    secret: str | None
    """webhook: the secret that signs requests; by default, a new one."""
    headers: Mapping[str, str] | None
    """webhook: additional headers of the requests."""
    host: str | None
    """email: the mail server."""
    port: int | None
    """email: the port. Its default depends on tls: starttls 587, tls 465, none 25."""
    tls: Literal["starttls", "tls", "none"] | None
    """email: the encryption of the connection."""
    from_: str | None
    """email: the address of the sender."""
    to: str | Sequence[str] | None
    """email: the addresses of the receivers."""
    username: str | None
    """email: the user name at the mail server."""
    password: str | None
    """email: the password at the mail server."""
    urls: str | Sequence[str] | None
    """apprise: the URLs of the services, in the format of the library apprise."""
