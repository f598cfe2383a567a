"""What a step of a workflow may wait for: `sleep`, `event`, `signal`, `approval` and `callback`."""

from collections.abc import Callable
from typing import Any

from horae.env import SECOND, Micros
from horae.errors import BadInput
from horae.model.base.duration import DAY, format_duration
from horae.model.fields.values import a_duration, a_list, a_text, an_object, one_of, refuse_unknown
from horae.model.tenancy.principal import NESTED
from horae.model.workflows.decisions.values import Approval, Callback, EventWait, SignalWait, Sleep, Wait

KINDS = ("sleep", "event", "signal", "approval", "callback")
MOST_ROLES = 16
WHO_MAY = tuple(role for role in NESTED if role != "viewer")  # who only looks cannot answer
LONGEST: Micros = 400 * DAY
_SLEEP = 'Write "5m", or {"until": "${params.at}"}.'
_EVENT = 'Write {"name": "payment", "filter": "${event.payload.order == params.order}", "timeout": "1d"}.'
_SIGNAL = 'Write {"name": "go", "timeout": "1d"}.'
_APPROVAL = 'Write {"roles": ["operator"], "message": "...", "remind": "4h", "timeout": "2d", "onTimeout": "reject"}.'
_CALLBACK = 'Write {"timeout": "1h"}, or true.'


def read_wait(kind: str, value: Any) -> Wait:
    """What a step waits for."""
    return _READERS[kind](value)


def _sleep(value: Any) -> Wait:
    if not isinstance(value, dict):
        return Sleep(span=a_duration(value, "sleep", 0, LONGEST))
    refuse_unknown(value, ("until",), "sleep", "sleep.")
    if "until" not in value:
        raise BadInput("sleep does not say how long.", _SLEEP, field="sleep")
    return Sleep(until=a_text(value["until"], "sleep.until", most=4096, least=1))


def _event(value: Any) -> Wait:
    given = _object({"name": value} if isinstance(value, str) else value, "event", _EVENT)
    refuse_unknown(given, ("name", "filter", "timeout", "onTimeout"), "event", "event.")
    filter = given.get("filter", "")
    return EventWait(
        name=_name(given, "event", _EVENT),
        filter=a_text(filter, "event.filter", most=4096),
        **_late(given, "event", ("fail", "skip"), "fail"),
    )


def _signal(value: Any) -> Wait:
    given = _object({"name": value} if isinstance(value, str) else value, "signal", _SIGNAL)
    refuse_unknown(given, ("name", "timeout", "onTimeout"), "signal", "signal.")
    return SignalWait(name=_name(given, "signal", _SIGNAL), **_late(given, "signal", ("fail", "skip"), "fail"))


def _approval(value: Any) -> Wait:
    given = _object({} if value is True else value, "approval", _APPROVAL)
    refuse_unknown(given, ("roles", "message", "remind", "timeout", "onTimeout"), "approval", "approval.")
    roles = a_list(given.get("roles", []), "approval.roles", _APPROVAL, MOST_ROLES)
    remind = given.get("remind")
    return Approval(
        roles=tuple(dict.fromkeys(_role(role, f"approval.roles[{i}]") for i, role in enumerate(roles))),
        message=a_text(given.get("message", ""), "approval.message", most=4096),
        remind=None if remind is None else a_duration(remind, "approval.remind", SECOND, LONGEST),
        **_late(given, "approval", ("reject", "approve", "skip"), "reject"),
    )


def _role(value: Any, field: str) -> str:
    if value not in WHO_MAY:
        shown = repr(value)[:60] if isinstance(value, str) else "That"
        raise BadInput(f"{shown} is not the name of a role.", f"It is one of: {', '.join(WHO_MAY)}.", field=field)
    return str(value)


def _callback(value: Any) -> Wait:
    given = _object({} if value is True else value, "callback", _CALLBACK)
    refuse_unknown(given, ("timeout", "onTimeout"), "callback", "callback.")
    return Callback(**_late(given, "callback", ("fail", "skip"), "fail"))


def _object(value: Any, field: str, remedy: str) -> dict[str, Any]:
    return {name: part for name, part in an_object(value, field, remedy).items() if part is not None}


def _name(given: dict[str, Any], field: str, remedy: str) -> str:
    if "name" not in given:
        raise BadInput(f"{field} does not say which one.", remedy, field=f"{field}.name")
    return a_text(given["name"], f"{field}.name", most=256, least=1)


def _late(given: dict[str, Any], field: str, words: tuple[str, ...], usual: str) -> dict[str, Any]:
    """How long it waits, and what becomes of it then."""
    if "onTimeout" in given and "timeout" not in given:
        raise BadInput("onTimeout says nothing without a timeout.", "Add one.", field=f"{field}.onTimeout")
    span = given.get("timeout")
    timeout = None if span is None else a_duration(span, f"{field}.timeout", SECOND, LONGEST)
    return {"timeout": timeout, "on_timeout": one_of(given.get("onTimeout", usual), f"{field}.onTimeout", words)}


_READERS: dict[str, Callable[[Any], Wait]] = {
    "sleep": _sleep,
    "event": _event,
    "signal": _signal,
    "approval": _approval,
    "callback": _callback,
}


def render_wait(wait: Wait) -> dict[str, Any]:
    """The field and its value that read as this wait."""
    if isinstance(wait, Sleep):
        return {"sleep": {"until": wait.until} if wait.span is None else format_duration(wait.span)}
    timeout = {} if wait.timeout is None else {"timeout": format_duration(wait.timeout), "onTimeout": wait.on_timeout}
    if isinstance(wait, EventWait):
        return {"event": {"name": wait.name, **({"filter": wait.filter} if wait.filter else {}), **timeout}}
    if isinstance(wait, SignalWait):
        return {"signal": {"name": wait.name, **timeout}}
    if isinstance(wait, Callback):
        return {"callback": timeout or True}
    roles = {"roles": list(wait.roles)} if wait.roles else {}
    message = {"message": wait.message} if wait.message else {}
    remind = {} if wait.remind is None else {"remind": format_duration(wait.remind)}
    return {"approval": {**roles, **message, **remind, **timeout} or True}
