"""The API views of alerts, rules and channels."""

from typing import Annotated, Any
from uuid import UUID

from msgspec import Meta

from horae.features.alerts.model.channel import ChannelKind
from horae.features.alerts.model.rule import AlertState, Kind, NoticeKind, NoticeState, RuleState, Severity
from horae.model.base.view import Time, View


class RuleView(View, frozen=True, kw_only=True):
    """A rule. `definition` contains its fields, in the spelling in which they were given."""

    name: str
    kind: Kind
    state: RuleState
    description: str
    severity: Severity
    channels: list[str]
    definition: Annotated[dict[str, Any], Meta(description="The complete rule in the format of PUT.")]
    firing: Annotated[int, Meta(description="The number of its firing alerts.")]
    version: int
    created_at: Time
    updated_at: Time


class ChannelView(View, frozen=True, kw_only=True):
    """A channel: its receivers, without its secrets."""

    name: str
    kind: ChannelKind
    description: str
    to: Annotated[dict[str, Any], Meta(description="Its receivers; of a URL only the host.")]
    secret: Annotated[str | None, Meta(description="The new secret of a webhook, shown only once.")] = None
    version: int
    created_at: Time
    updated_at: Time


class DeliveryView(View, frozen=True, kw_only=True):
    """The state of a notice; it is pending while it is tried again."""

    channel: str
    kind: NoticeKind
    state: NoticeState
    attempts: int
    last_error: str | None
    at: Time


class TestView(View, frozen=True, kw_only=True):
    """The result of a test: one notice for each channel, tried once."""

    __test__ = False  # pytest must not collect it

    deliveries: list[DeliveryView]


class AcknowledgedView(View, frozen=True, kw_only=True):
    """The acknowledgement of all firing alerts of a rule."""

    rule: str
    acknowledged: Annotated[int, Meta(description="The number of alerts that were not acknowledged before.")]


class AlertView(View, frozen=True, kw_only=True):
    """An alert. At most one is firing per rule and subject; its `count` grows about once a minute while it fires."""

    alert_id: UUID
    rule: str
    kind: Kind
    severity: Severity
    state: AlertState
    subject: Annotated[str, Meta(description="The name of a job (with the key of a circuit), a queue or a worker.")]
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
