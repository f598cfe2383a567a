"""Keywords of requests. `python -m tools.sdk` writes this module from the tables of their fields."""

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
    """What it looks for."""
    jobs: str | Sequence[str] | None
    """The jobs it is about; * and ? match any."""
    channels: str | Sequence[str] | None
    """The channels that are told."""
    severity: Literal["info", "warning", "critical"] | None
    """How bad it is; every notice says it."""
    description: str | None
    """What it is for."""
    repeat_every: Span | None
    """Remind so often, until it is over or somebody acknowledges it."""
    max_notices: str | None
    """How many notices of new alerts and reminders are sent in a span."""
    recovery: bool | None
    """Whether channels are told when it is over."""
    below: str | None
    """success-rate: it fires below this share of successes."""
    window: Span | None
    """success-rate, retry-rate: the time over which executions are counted."""
    minimum: int | None
    """success-rate, retry-rate: how many executions the window must have before it fires."""
    count: int | None
    """failures-in-a-row: how many failed in a row."""
    above: str | None
    """retry-rate: it fires above so many retries for each execution."""
    times: float | None
    """overlong: how many times the 95th percentile of the last week it took."""
    min_duration: Span | None
    """overlong: the shortest duration that counts."""
    workers: str | Sequence[str] | None
    """late-worker, worker-lost: the workers it is about; * and ? match any."""
    after: Span | None
    """late-worker: how long it has been silent. lag: how late the fire is. queue-age: how long it has been queued."""
    queues: str | Sequence[str] | None
    """queue-age: the queues it is about; * and ? match any."""
    since: Span | None
    """missing-success: how long none has succeeded."""
    margin: Span | None
    """deadline-risk: how long before the deadline it should have ended."""
    within: Span | None
    """worker-lost: how long that is an alert; then it is forgotten."""


class AlertChannelFields(TypedDict, total=False):
    """The fields of a channel; secret fields that are not given stay unchanged."""

    kind: Literal["webhook", "email", "apprise"] | None
    """How it tells."""
    description: str | None
    """Whom it reaches."""
    url: str | None
    """webhook: the URL that takes the requests."""
    secret: str | None
    """webhook: what requests are signed with; one is made unless given."""
    headers: Mapping[str, str] | None
    """webhook: more headers of the requests."""
    host: str | None
    """email: the mail server."""
    port: int | None
    """email: its port; 587 otherwise, 465 with tls, 25 with none."""
    tls: Literal["starttls", "tls", "none"] | None
    """email: how the connection is encrypted."""
    from_: str | None
    """email: the address that the mails come from."""
    to: str | Sequence[str] | None
    """email: the addresses that the mails go to."""
    username: str | None
    """email: who signs in at the mail server."""
    password: str | None
    """email: with which password."""
    urls: str | Sequence[str] | None
    """apprise: services, as apprise spells them."""
