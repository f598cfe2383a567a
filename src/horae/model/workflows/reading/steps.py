"""Steps of a workflow, as a user writes them and as they are stored."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from horae.env import Micros
from horae.errors import BadInput
from horae.model.base.duration import DAY, format_duration
from horae.model.definitions.job import JOB
from horae.model.executions.parcel import check_item
from horae.model.fields.values import a_duration, a_list, a_text, an_int, an_object, kind_of, one_of, refuse_unknown
from horae.model.workflows.decisions.check import told_of
from horae.model.workflows.decisions.joins import JOINS
from horae.model.workflows.decisions.naming import a_step_name
from horae.model.workflows.decisions.values import MOST_ITEMS, MOST_RUNS, MOST_STEPS, Branch, Call, Foreach, Loop, Step
from horae.model.workflows.reading.step_waits import KINDS as WAITS
from horae.model.workflows.reading.step_waits import read_wait, render_wait

TASKS = ("command", "python", "http", "workflow")
# What a step may say of the job that it runs: of its own, or instead of what the named one says.
OF_JOB = JOB.where(lambda field: field.steps == "own")
LOOPS = ("while", "until", "every", "most")
FIELDS = (
    *("name", "job", *TASKS, "steps", "params", "after", "when", "join", "foreach", *LOOPS, *WAITS, "switch"),
    *("priority", "ignoreFailure", "undo", *OF_JOB),
)
KINDS = ("job", *TASKS, "steps", *WAITS, "switch")
UNDO = ("job", *TASKS, "steps", "params", *OF_JOB)
MOST_AFTER = 1000  # as many as a workflow has steps
MOST_BRANCHES = 64
_ACCEPTED = 'Write {"name": "load", "job": "load-orders", "after": ["extract"]}.'
_ONE_KIND = (
    "Say what it does: job, command, python, http or steps; sleep, event, signal, approval or callback; or switch."
)
_FOREACH = 'Write {"items": "${steps.extract.result.parts}", "concurrency": 10, "tolerate": "5%"}.'
_SWITCH = 'Write [{"when": "${steps.check.result.ok}", "then": ["load"]}, {"else": ["report"]}].'
_AFTER = 'Name other steps: ["extract"].'


@contextmanager
def of_step(name: str, place: str) -> Iterator[None]:
    """What is wrong is told of this step, which lies at this place of the definition."""
    try:
        yield
    except BadInput as error:
        inner = str(error.fields.get("field", ""))
        error.fields["field"] = f"{place}.{inner}" if inner else place
        error.fields.setdefault("step", name)
        error.detail = told_of(name, error.detail)
        raise


def read_steps(value: Any, field: str) -> tuple[Step, ...]:
    """A list of steps."""
    listed = a_list(value, field, f"List the steps: [{{...}}]. {_ACCEPTED}", MOST_STEPS)
    return tuple(_read(one, f"{field}[{i}]") for i, one in enumerate(listed))


def _read(value: Any, place: str) -> Step:
    given = {name: part for name, part in an_object(value, place, _ACCEPTED).items() if part is not None}
    if "name" not in given:
        raise BadInput(f"{place} has no name.", _ACCEPTED, field=f"{place}.name")
    try:
        name = a_step_name(given["name"])
    except BadInput as error:
        raise BadInput(error.detail, error.remedy, field=f"{place}.name") from None
    with of_step(name, place):
        refuse_unknown(given, FIELDS, "A step")
        return _step(name, given)


def _step(name: str, given: dict[str, Any]) -> Step:
    kinds = [kind for kind in KINDS if kind in given]
    if len(kinds) != 1:
        problem = f"It does {' and '.join(kinds)}, not one thing." if kinds else "Nothing says what it does."
        raise BadInput(problem, _ONE_KIND, field=kinds[1] if kinds else "job")
    kind = kinds[0]
    runs = kind in ("job", *TASKS, "steps")
    if not runs:
        _refuse_beside(given, kind)
    return Step(
        name=name,
        **(read_call(given) if runs else {}),
        after=tuple(dict.fromkeys(_names(given.get("after", []), "after"))),
        when=_text_of(given.get("when", ""), "when"),
        join=_join(given.get("join", "allSuccess")),
        foreach=read_foreach(given["foreach"]) if "foreach" in given else None,
        loop=_loop(given),
        wait=read_wait(kind, given[kind]) if kind in WAITS else None,
        switch=_switch(given["switch"]) if kind == "switch" else (),
        priority=an_int(given["priority"], "priority", 0, 9) if "priority" in given else None,
        ignore_failure=_yes(given.get("ignoreFailure", False), "ignoreFailure"),
        undo=_undo(given["undo"]) if "undo" in given else None,
    )


def _join(value: Any) -> Any:
    return one_of(value, "join", JOINS)


def _refuse_beside(given: Mapping[str, Any], kind: str) -> None:
    """A step that runs no job says nothing about one."""
    for field in ("params", "foreach", *LOOPS, "undo", "priority", *OF_JOB):
        if field in given:
            raise BadInput(
                f"{field} says nothing in a step that does {kind}: it runs no job.", "Leave it out.", field=field
            )


def read_call(given: Mapping[str, Any]) -> dict[str, Any]:
    """What a step runs, and with what: the fields of a `Call`."""
    own = {field: given[field] for field in (*TASKS, *OF_JOB) if field in given}
    if "steps" in given:
        own["workflow"] = {"steps": given["steps"]}
    params = given.get("params")
    if params is not None:
        _check_params(params)
    job = a_text(given["job"], "job", most=128, least=1) if "job" in given else ""
    return {"job": job, "own": own, "params": params}


def _check_params(value: Any) -> None:
    params = an_object(value, "params", 'Write an object such as {"day": "${params.day}"}.')
    try:
        check_item(msgspec.json.encode(params))
    except (TypeError, ValueError, RecursionError):
        detail = "params is not JSON."
        raise BadInput(detail, "Use texts, numbers, lists and objects.", field="params") from None


def _undo(value: Any) -> Call:
    remedy = 'Write {"job": "remove-part", "params": {"part": "${steps.load.result}"}}.'
    given = {"job": value} if isinstance(value, str) else an_object(value, "undo", remedy)
    given = {name: part for name, part in given.items() if part is not None}
    refuse_unknown(given, UNDO, "undo", "undo.")
    kinds = [kind for kind in ("job", *TASKS, "steps") if kind in given]
    if len(kinds) != 1:
        raise BadInput("undo runs one thing.", remedy, field="undo")
    try:
        return Call(**read_call(given))
    except BadInput as error:
        error.fields["field"] = f"undo.{error.fields.get('field', '')}"
        raise


def read_foreach(value: Any) -> Foreach:
    """Over which items, how many at once, and how many may fail."""
    given = {"items": value} if isinstance(value, str | list) else an_object(value, "foreach", _FOREACH)
    given = {name: part for name, part in given.items() if part is not None}
    refuse_unknown(given, ("items", "concurrency", "tolerate"), "foreach", "foreach.")
    if "items" not in given:
        raise BadInput("foreach does not say over which items.", _FOREACH, field="foreach.items")
    count, percent = _tolerate(given.get("tolerate", 0))
    at_once = given.get("concurrency")
    return Foreach(
        items=_items(given["items"]),
        concurrency=None if at_once is None else an_int(at_once, "foreach.concurrency", 1, MOST_ITEMS),
        tolerate=count,
        tolerate_percent=percent,
    )


def _items(value: Any) -> Any:
    if isinstance(value, list):
        if len(value) > MOST_ITEMS:
            raise BadInput(f"foreach.items has {len(value)} items.", f"At most {MOST_ITEMS}.", field="foreach.items")
        return value
    if not isinstance(value, str) or "${" not in value:
        raise BadInput(f"foreach.items is {kind_of(value)}, not a list.", _FOREACH, field="foreach.items")
    return value


def _tolerate(value: Any) -> tuple[int, int | None]:
    if isinstance(value, str) and value.strip().endswith("%"):
        number = value.strip()[:-1].strip()
        if not number.isdigit() or int(number) > 100:
            remedy = 'Write a number of items, or a share: "5%".'
            raise BadInput(f"foreach.tolerate cannot be {value[:20]!r}.", remedy, field="foreach.tolerate")
        return 0, int(number)
    return an_int(value, "foreach.tolerate", 0, MOST_ITEMS, 'Write a number of items, or a share: "5%".'), None


def _loop(given: Mapping[str, Any]) -> Loop | None:
    if "while" in given and "until" in given:
        raise BadInput("It has both while and until.", "Keep one of them: each ends the loop.", field="until")
    word = next((word for word in ("while", "until") if word in given), None)
    if word is None:
        extra = next((field for field in ("every", "most") if field in given), None)
        if extra is not None:
            raise BadInput(f"{extra} says nothing without while or until.", "Add one, or leave it out.", field=extra)
        return None
    if "foreach" in given:
        detail = f"It has both foreach and {word}."
        raise BadInput(detail, "Give the loop to a workflow of its own: `steps`.", field=word)
    every: Micros = a_duration(given.get("every", 0), "every", 0, 400 * DAY)
    most = an_int(given.get("most", 100), "most", 1, MOST_RUNS)
    return Loop(condition=_text_of(given[word], word), until=word == "until", every=every, most=most)


def _switch(value: Any) -> tuple[Branch, ...]:
    listed = a_list(value, "switch", _SWITCH, MOST_BRANCHES)
    if not listed:
        raise BadInput("switch has no branch.", _SWITCH, field="switch")
    return tuple(_branch(one, i, len(listed)) for i, one in enumerate(listed))


def _branch(value: Any, i: int, count: int) -> Branch:
    field = f"switch[{i}]"
    given = an_object(value, field, _SWITCH)
    refuse_unknown(given, ("when", "then", "else"), "A branch", f"{field}.")
    if "else" in given:
        if i != count - 1 or len(given) > 1:
            raise BadInput("else is the last branch, and stands alone.", _SWITCH, field=field)
        return Branch(then=_names(given["else"], f"{field}.else"))
    if "when" not in given or "then" not in given:
        raise BadInput(f"{field} needs when and then.", _SWITCH, field=field)
    return Branch(when=_text_of(given["when"], f"{field}.when"), then=_names(given["then"], f"{field}.then"))


def _names(value: Any, field: str) -> tuple[str, ...]:
    listed = a_list([value] if isinstance(value, str) else value, field, _AFTER, MOST_AFTER)
    return tuple(a_text(name, f"{field}[{i}]", most=128, least=1) for i, name in enumerate(listed))


def _text_of(value: Any, field: str) -> str:
    """A condition as it is kept; a plain yes or no is one, too."""
    if isinstance(value, bool):
        return "${true}" if value else "${false}"
    return a_text(value, field, most=4096)


def _yes(value: Any, field: str) -> bool:
    if not isinstance(value, bool):
        raise BadInput(f"{field} is {kind_of(value)}, neither true nor false.", "Write true or false.", field=field)
    return value


def render_step(step: Step, names: Mapping[str, str]) -> dict[str, Any]:
    """A step in the API's spelling, without what says nothing."""
    said: dict[str, Any] = {"name": step.name, **_render_call(step, names)}
    if step.wait is not None:
        said |= render_wait(step.wait)
    if step.switch:
        said["switch"] = [_render_branch(branch) for branch in step.switch]
    said |= {"after": list(step.after), "when": step.when, "foreach": _render_foreach(step.foreach)}
    said |= _render_loop(step.loop)
    said["undo"] = None if step.undo is None else _render_call(step.undo, names)
    said |= {"priority": step.priority, "ignoreFailure": step.ignore_failure}
    rendered = {field: value for field, value in said.items() if value not in (None, "", [], False)}
    return rendered if step.join == "allSuccess" else {**rendered, "join": step.join}


def _render_call(call: Call, names: Mapping[str, str]) -> dict[str, Any]:
    own = dict(call.own)
    if is_short(own):
        own["steps"] = own.pop("workflow")["steps"]
    job = {"job": names.get(call.job, call.job)} if call.job else {}
    return {**job, **own, **({} if call.params is None else {"params": call.params})}


def is_short(own: Mapping[str, Any]) -> bool:
    """Whether a step that is a workflow of its own says nothing of it but its steps."""
    nested = own.get("workflow")
    return isinstance(nested, dict) and set(nested) == {"steps"}


def _render_foreach(foreach: Foreach | None) -> dict[str, Any] | None:
    if foreach is None:
        return None
    tolerate: Any = foreach.tolerate if foreach.tolerate_percent is None else f"{foreach.tolerate_percent}%"
    at_once = {} if foreach.concurrency is None else {"concurrency": foreach.concurrency}
    return {"items": foreach.items, **at_once, **({"tolerate": tolerate} if tolerate else {})}


def _render_loop(loop: Loop | None) -> dict[str, Any]:
    if loop is None:
        return {}
    every = {"every": format_duration(loop.every)} if loop.every else {}
    return {"until" if loop.until else "while": loop.condition, **every, "most": loop.most}


def _render_branch(branch: Branch) -> dict[str, Any]:
    return {"when": branch.when, "then": list(branch.then)} if branch.when else {"else": list(branch.then)}
