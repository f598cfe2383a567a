"""Alerts: rules that watch jobs, queues and workers, channels that are notified, and the alerts themselves."""

from typing import Annotated, Any

from msgspec import Meta

from horae.errors import Conflict, MasterKeyMissing, NotFound, Stale
from horae.features.alerts.model.channel import CHANNEL
from horae.features.alerts.model.rule import RULE, AlertState
from horae.features.alerts.model.view import AcknowledgementView, AlertTestView, AlertView, ChannelView, RuleView
from horae.features.alerts.part import AlertsPart
from horae.model.base.view import Page
from horae.model.fields.derived import body
from horae.server.access import EDIT, OPERATE, VIEW
from horae.server.call import ApiCall
from horae.server.reading.bodies import RequestBody
from horae.server.reading.queries import JobRef, Paged, Text
from horae.server.reply import Response, nothing, ok
from horae.server.route import ACTION, ACTION_AND_CHANGES, API, CHANGES, REQUEST, delete, get, post, put
from horae.server.scopes import closed

IF_MATCH = {"If-Match": "The ETag as it was read: the request is refused if the resource was changed meanwhile."}
AlertRuleBody = body(
    RULE,
    "AlertRuleBody",
    "A rule: its kind, the jobs, queues or workers to watch, and the channels to notify. Each kind has its own fields.",
    RequestBody,
    needed=("kind",),
)
NewAlertRule = body(RULE, "NewAlertRule", "A new rule.", RequestBody, needed=("name", "kind"))
AlertChannelBody = body(
    CHANNEL,
    "AlertChannelBody",
    "A channel: a webhook, e-mail, or services of apprise. A secret that is left out keeps its value.",
    RequestBody,
    needed=("kind",),
)
NewAlertChannel = body(CHANNEL, "NewAlertChannel", "A new channel.", RequestBody, needed=("name", "kind"))


class AlertList(Paged, frozen=True, kw_only=True):
    """The query of a page of alerts."""

    state: Annotated[AlertState, Meta(description="Only firing or only recovered alerts.")] | None = None
    rule: Annotated[Text, Meta(description="Only alerts of this rule.")] | None = None
    job: JobRef | None = None


@get(f"{API}/alerts", "alerts.list", Page[AlertView], access=VIEW, scope=closed, refuses=(NotFound,))
async def list_alerts(call: ApiCall, query: AlertList) -> Response:
    """List alerts, newest first, each with the state of its notices."""
    page = await call.node.part(AlertsPart).alerts.list(
        call.namespace, state=query.state, rule=query.rule, job=query.job, limit=query.limit, cursor=query.cursor
    )
    return ok(page)


@get(f"{API}/alerts/{{id}}", "alerts.get", AlertView, access=VIEW, scope=closed, refuses=(NotFound,))
async def get_alert(call: ApiCall) -> Response:
    """Read an alert."""
    return ok(await call.node.part(AlertsPart).alerts.get(call.namespace, call.id()))


@post(
    f"{API}/alerts/{{id}}/acknowledge", "alerts.acknowledge", AlertView,
    access=OPERATE, scope=closed, audit=REQUEST, refuses=(NotFound, Conflict),
)  # fmt: skip
async def acknowledge(call: ApiCall) -> Response:
    """Acknowledge an alert, which ends its reminders."""
    return ok(await call.node.part(AlertsPart).alerts.acknowledge(call.namespace, call.id(), call.caller))


def _rule(view: RuleView, status: int = 200) -> Response:
    location = f"{API}/alert-rules/{view.name}" if status == 201 else None
    return ok(view, status, location=location, version=view.version)


@post(
    f"{API}/alert-rules", "alert-rules.create", RuleView,
    access=EDIT, scope=closed, audit=REQUEST, status=201, takes=NewAlertRule, refuses=(Conflict,),
)  # fmt: skip
async def create_rule(call: ApiCall, body: dict[str, Any]) -> Response:
    """Create an alert rule."""
    return _rule(await call.node.part(AlertsPart).rules.create(call.namespace, body), 201)


@get(f"{API}/alert-rules", "alert-rules.list", Page[RuleView], access=VIEW, scope=closed)
async def list_rules(call: ApiCall, query: Paged) -> Response:
    """List alert rules, sorted by name."""
    return ok(await call.node.part(AlertsPart).rules.list(call.namespace, limit=query.limit, cursor=query.cursor))


@get(f"{API}/alert-rules/{{name}}", "alert-rules.get", RuleView, access=VIEW, scope=closed, refuses=(NotFound,))
async def get_rule(call: ApiCall) -> Response:
    """Read an alert rule."""
    return _rule(await call.node.part(AlertsPart).rules.get(call.namespace, call.path("name")))


@put(
    f"{API}/alert-rules/{{name}}", "alert-rules.put", {200: RuleView, 201: RuleView},
    access=EDIT, scope=closed, audit=CHANGES, takes=AlertRuleBody, headers=IF_MATCH, refuses=(Stale, Conflict),
)  # fmt: skip
async def put_rule(call: ApiCall, body: dict[str, Any]) -> Response:
    """Create or replace an alert rule."""
    view, is_new = await call.node.part(AlertsPart).rules.put(
        call.namespace, call.path("name"), body, if_match=call.if_match()
    )
    return _rule(view, 201 if is_new else 200)


@delete(
    f"{API}/alert-rules/{{name}}", "alert-rules.delete", access=EDIT, scope=closed, audit=CHANGES, refuses=(NotFound,)
)
async def delete_rule(call: ApiCall) -> Response:
    """Delete an alert rule; its alerts end without notices."""
    await call.node.part(AlertsPart).rules.delete(call.namespace, call.path("name"))
    return nothing()


@post(
    f"{API}/alert-rules/{{name}}/pause", "alert-rules.pause", RuleView,
    access=OPERATE, scope=closed, audit=CHANGES, refuses=(NotFound,),
)  # fmt: skip
async def pause_rule(call: ApiCall) -> Response:
    """Pause an alert rule; its alerts end without notices."""
    return _rule(await call.node.part(AlertsPart).rules.set_state(call.namespace, call.path("name"), "paused"))


@post(
    f"{API}/alert-rules/{{name}}/resume", "alert-rules.resume", RuleView,
    access=OPERATE, scope=closed, audit=CHANGES, refuses=(NotFound,),
)  # fmt: skip
async def resume_rule(call: ApiCall) -> Response:
    """Resume an alert rule."""
    return _rule(await call.node.part(AlertsPart).rules.set_state(call.namespace, call.path("name"), "active"))


@post(
    f"{API}/alert-rules/{{name}}/acknowledge", "alert-rules.acknowledge", AcknowledgementView,
    access=OPERATE, scope=closed, audit=CHANGES, refuses=(NotFound,),
)  # fmt: skip
async def acknowledge_rule(call: ApiCall) -> Response:
    """Acknowledge all firing alerts of a rule, which ends their reminders."""
    return ok(await call.node.part(AlertsPart).alerts.acknowledge_rule(call.namespace, call.path("name"), call.caller))


@post(
    f"{API}/alert-rules/{{name}}/test", "alert-rules.test", AlertTestView,
    access=OPERATE, scope=closed, audit=CHANGES, refuses=(NotFound, Conflict),
)  # fmt: skip
async def test_rule(call: ApiCall) -> Response:
    """Send one test notice to each channel of a rule, and return the outcomes."""
    return ok(await call.node.part(AlertsPart).alerts.test_rule(call.namespace, call.path("name")))


def _channel(view: ChannelView, status: int = 200) -> Response:
    location = f"{API}/alert-channels/{view.name}" if status == 201 else None
    return ok(view, status, location=location, version=view.version)


@post(
    f"{API}/alert-channels", "alert-channels.create", ChannelView,
    access=EDIT, scope=closed, audit=ACTION, status=201, takes=NewAlertChannel, idempotency="none",
    refuses=(Conflict, MasterKeyMissing),
)  # fmt: skip
async def create_channel(call: ApiCall, body: dict[str, Any]) -> Response:
    """Create a channel. The new secret of a webhook is shown only in this answer."""
    return _channel(await call.node.part(AlertsPart).channels.create(call.namespace, body), 201)


@get(f"{API}/alert-channels", "alert-channels.list", Page[ChannelView], access=VIEW, scope=closed)
async def list_channels(call: ApiCall, query: Paged) -> Response:
    """List channels, sorted by name, without their secrets."""
    return ok(await call.node.part(AlertsPart).channels.list(call.namespace, limit=query.limit, cursor=query.cursor))


@get(
    f"{API}/alert-channels/{{name}}", "alert-channels.get", ChannelView, access=VIEW, scope=closed, refuses=(NotFound,)
)
async def get_channel(call: ApiCall) -> Response:
    """Read a channel, without its secrets."""
    return _channel(await call.node.part(AlertsPart).channels.get(call.namespace, call.path("name")))


@put(
    f"{API}/alert-channels/{{name}}", "alert-channels.put", {200: ChannelView, 201: ChannelView},
    access=EDIT, scope=closed, audit=ACTION_AND_CHANGES, takes=AlertChannelBody, headers=IF_MATCH,
    refuses=(Stale, Conflict, MasterKeyMissing),
)  # fmt: skip
async def put_channel(call: ApiCall, body: dict[str, Any]) -> Response:
    """Create or replace a channel; a secret that is left out keeps its value."""
    view, is_new = await call.node.part(AlertsPart).channels.put(
        call.namespace, call.path("name"), body, if_match=call.if_match()
    )
    return _channel(view, 201 if is_new else 200)


@delete(
    f"{API}/alert-channels/{{name}}", "alert-channels.delete",
    access=EDIT, scope=closed, audit=ACTION_AND_CHANGES, refuses=(NotFound, Conflict),
)  # fmt: skip
async def delete_channel(call: ApiCall) -> Response:
    """Delete a channel that no rule uses."""
    await call.node.part(AlertsPart).channels.delete(call.namespace, call.path("name"))
    return nothing()


@post(
    f"{API}/alert-channels/{{name}}/test", "alert-channels.test", AlertTestView,
    access=OPERATE, scope=closed, audit=ACTION_AND_CHANGES, refuses=(NotFound,),
)  # fmt: skip
async def test_channel(call: ApiCall) -> Response:
    """Send one test notice to a channel, and return the outcome."""
    return ok(await call.node.part(AlertsPart).alerts.test_channel(call.namespace, call.path("name")))
