"""Alerts, rules and channels as the API shows them."""

from typing import Annotated, Any
from uuid import UUID

from msgspec import Meta

from horae.features.alerts.model.channel import ChannelKind
from horae.features.alerts.model.rule import AlertState, Kind, NoticeKind, NoticeState, RuleState, Severity
from horae.model.base.view import Time, View


class RuleView(View, frozen=True, kw_only=True):
    """A rule. `definition` has all its fields, in the format in which users write them."""

    name: str
    kind: Kind
    state: RuleState
    description: str
    severity: Severity
    channels: list[str]
    definition: Annotated[dict[str, Any], Meta(description="The complete rule in the format of PUT.")]
    firing: Annotated[int, Meta(description="The number of firing alerts of the rule.")]
    version: int
    created_at: Time
    updated_at: Time


class ChannelView(View, frozen=True, kw_only=True):
    """A channel: its receivers, without its secrets."""

    name: str
    kind: ChannelKind
    description: str
    to: Annotated[dict[str, Any], Meta(description="The receivers. URLs are shortened: their paths may be secret.")]
    secret: Annotated[
        str | None, Meta(description="The secret that was created for a webhook; shown only in this answer.")
    ] = None
    version: int
    created_at: Time
    updated_at: Time


class DeliveryView(View, frozen=True, kw_only=True):
    """The delivery of a notice to a channel. It is pending until it is delivered, or given up as failed."""

    channel: str
    kind: NoticeKind
    state: NoticeState
    attempts: int
    last_error: str | None
    at: Time


class AlertTestView(View, frozen=True, kw_only=True):
    """The result of a test, for which one notice is sent to each channel. A failed notice is not tried again."""

    __test__ = False  # pytest must not collect it

    deliveries: list[DeliveryView]


class AcknowledgementView(View, frozen=True, kw_only=True):
    """The acknowledgement of all firing alerts of a rule."""

    rule: str
    acknowledged: Annotated[int, Meta(description="The number of alerts that were not acknowledged before.")]


class AlertView(View, frozen=True, kw_only=True):
    """An alert about one subject of a rule. At most one alert is firing for each rule and subject.

    `count` grows about once a minute while it fires.
    """

    alert_id: UUID
    rule: str
    kind: Kind
    severity: Severity
    state: AlertState
    subject: Annotated[
        str,
        Meta(description="The name of a job, a queue or a worker. For a circuit that has a key, it is `job:key`."),
    ]
    job_id: UUID | None
    execution_id: Annotated[UUID | None, Meta(description="An execution that shows the problem.")]
    message: str
    since: Time
    last_at: Time
    recovered_at: Time | None
    count: int
    acknowledged_at: Time | None
    acknowledged_by: str | None
    deliveries: list[DeliveryView]
