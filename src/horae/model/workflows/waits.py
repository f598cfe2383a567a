"""Waits of a workflow step, in the API's format and in stored form: one struct per kind."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from horae.env import SECOND, Micros
from horae.errors import BadInput
from horae.model.base.duration import DAY, format_duration
from horae.model.fields.kinds import Choice, Custom, Duration, SpanText, Text
from horae.model.fields.table import Document, Field, Group, Object
from horae.model.fields.values import a_duration, a_list, a_text, one_of, refuse_unknown
from horae.model.tenancy.principal import NESTED
from horae.model.workflows.kinds import WorkflowPart

OnLate = Literal["fail", "skip", "reject", "approve"]  # the outcome of a wait that times out
MOST_ROLES = 16
ANSWERING_ROLES = tuple(role for role in NESTED if role != "viewer")  # viewers cannot answer
LONGEST: Micros = 400 * DAY
_SLEEP = 'Write "5m", or {"until": "${params.at}"}.'
_EVENT = 'Write {"name": "payment", "filter": "${event.payload.order == params.order}", "timeout": "1d"}.'
_SIGNAL = 'Write {"name": "go", "timeout": "1d"}.'
_APPROVAL = 'Write {"roles": ["operator"], "message": "...", "remind": "4h", "timeout": "2d", "onTimeout": "reject"}.'
_CALLBACK = 'Write {"timeout": "1h"}, or true.'
_TIMEOUT = Duration(SECOND, LONGEST)
_EVENT_NAME = Text(256, least=1)
_LATE: tuple[OnLate, ...] = ("fail", "skip")
_UNANSWERED: tuple[OnLate, ...] = ("reject", "approve", "skip")


def _late(words: tuple[OnLate, ...]) -> Group:
    """Return the group of a wait's fields `timeout` and `onTimeout`; `words` are the allowed values of `onTimeout`."""

    def read(given: Document, prefix: str) -> dict[str, Any]:
        span, word = given.get("timeout"), given.get("onTimeout")
        if word is not None and span is None:
            remedy = "Add a timeout."
            raise BadInput("onTimeout has no effect without a timeout.", remedy, field=f"{prefix}onTimeout")
        timeout = _TIMEOUT.read(span, f"{prefix}timeout")
        return {"timeout": timeout} | (
            {} if word is None else {"on_timeout": one_of(word, f"{prefix}onTimeout", words)}
        )

    return Group(read, _write_late)


def _write_late(wait: Any) -> dict[str, Any]:
    if wait.timeout is None:
        return {}
    return {"timeout": format_duration(wait.timeout), "onTimeout": wait.on_timeout}


LATE, UNANSWERED = _late(_LATE), _late(_UNANSWERED)
TIMEOUT = Field(_TIMEOUT, "How long it waits at most.", example="1d")


class Sleep(WorkflowPart, frozen=True, kw_only=True, tag_field="kind", tag="sleep"):
    """A wait for a span, or until an instant that an expression gives."""

    span: Micros | None = None
    until: str = ""


class EventWait(WorkflowPart, frozen=True, kw_only=True, tag_field="kind", tag="event"):
    """A wait for the next event with a name that passes `filter`; the step's result is the event."""

    name: Annotated[str, Field(_EVENT_NAME, "The name of the event.", example="payment")]
    # The filter can use `event` in addition to the usual variables.
    filter: Annotated[str, Field(Text(4096), "A condition that the event must meet.")] = ""
    timeout: Annotated[Micros | None, LATE, TIMEOUT] = None
    on_timeout: Annotated[OnLate, LATE, Field(Choice(_LATE), "The outcome of a step that waits too long.")] = "fail"


class SignalWait(WorkflowPart, frozen=True, kw_only=True, tag_field="kind", tag="signal"):
    """A wait for a signal to the workflow's execution; the step's result is the signal's payload."""

    name: Annotated[str, Field(_EVENT_NAME, "The name of the signal.", example="go")]
    timeout: Annotated[Micros | None, LATE, TIMEOUT] = None
    on_timeout: Annotated[OnLate, LATE, Field(Choice(_LATE), "The outcome of a step that waits too long.")] = "fail"


def _read_roles(value: Any, at: str) -> tuple[str, ...]:
    roles = a_list(value, at, _APPROVAL, MOST_ROLES)
    return tuple(dict.fromkeys(_role(role, f"{at}[{i}]") for i, role in enumerate(roles)))


def _role(value: Any, at: str) -> str:
    if value not in ANSWERING_ROLES:
        shown = repr(value)[:60] if isinstance(value, str) else "The given value"
        raise BadInput(f"{shown} is not the name of a role.", f"Choose one of: {', '.join(ANSWERING_ROLES)}.", field=at)
    return str(value)


_ROLES = Custom(_read_roles, list[str], "Sequence[str]", list, option="repeated")


class Approval(WorkflowPart, frozen=True, kw_only=True, tag_field="kind", tag="approval"):
    """A wait for an approval by a user with one of the roles; if the user rejects, the step fails."""

    roles: Annotated[
        tuple[str, ...],
        Field(_ROLES, "Roles that may answer; by default, operator and all higher roles.", example=["operator"]),
    ] = ()
    message: Annotated[str, Field(Text(4096), "The message to the approver, with expressions.")] = ""
    remind: Annotated[
        Micros | None, Field(Duration(SECOND, LONGEST), "A reminder is sent this long after the request.", example="4h")
    ] = None
    timeout: Annotated[Micros | None, UNANSWERED, TIMEOUT] = None
    on_timeout: Annotated[OnLate, UNANSWERED, Field(Choice(_UNANSWERED), "The answer if nobody answers in time.")] = (
        "reject"
    )


class Callback(WorkflowPart, frozen=True, kw_only=True, tag_field="kind", tag="callback"):
    """A wait for a call of a URL with a token that only this step has; the step's result is the body of the call."""

    timeout: Annotated[Micros | None, LATE, TIMEOUT] = None
    on_timeout: Annotated[OnLate, LATE, Field(Choice(_LATE), "The outcome of a step that waits too long.")] = "fail"


Wait = Sleep | EventWait | SignalWait | Approval | Callback


def _read_sleep(value: Any, at: str) -> Sleep:
    if not isinstance(value, dict):
        return Sleep(span=a_duration(value, at, 0, LONGEST))
    refuse_unknown(value, ("until",), at, f"{at}.")
    if "until" not in value:
        raise BadInput(f"{at} does not say how long.", _SLEEP, field=at)
    return Sleep(until=a_text(value["until"], f"{at}.until", most=4096, least=1))


def _write_sleep(sleep: Sleep) -> Any:
    return {"until": sleep.until} if sleep.span is None else format_duration(sleep.span)


SLEEP = Custom(_read_sleep, SpanText | dict[str, str], "Span | Mapping[str, str]", _write_sleep, out=Any)
EVENT = Object(EventWait, _EVENT, short=((str, "name"),), brief=True)
SIGNAL = Object(SignalWait, _SIGNAL, short=((str, "name"),), brief=True)
APPROVAL = Object(Approval, _APPROVAL, short=((bool, ""),), brief=True)
CALLBACK = Object(Callback, _CALLBACK, short=((bool, ""),), brief=True)
WAITS: Mapping[str, Custom | Object] = {
    "sleep": SLEEP, "event": EVENT, "signal": SIGNAL, "approval": APPROVAL, "callback": CALLBACK,
}  # fmt: skip


def _read_wait(given: Document, prefix: str) -> dict[str, Any]:
    name = next(name for name in WAITS if name in given)
    return {"wait": WAITS[name].read(given[name], prefix + name)}


def _write_wait(step: Any) -> dict[str, Any]:
    if step.wait is None:
        return {}
    name = type(step.wait).__struct_config__.tag
    return {name: WAITS[name].write(step.wait) or True}


WAIT = Group(_read_wait, _write_wait)
