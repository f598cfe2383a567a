"""The task of a job: `command`, `python`, `http` or `workflow`, in API form and as stored."""

import re
import shlex
from collections.abc import Callable, Mapping
from typing import Any

from horae.errors import BadInput
from horae.model.definitions.resource_limits import NO_LIMITS, RESOURCE_LIMITS, read_limits
from horae.model.definitions.tasks import CommandTask, HttpTask, PythonTask, Task
from horae.model.expressions.template import compile_template, compile_tree
from horae.model.fields.values import a_list, a_text, an_int, an_object, one_of, refuse_unknown
from horae.model.workflows.decisions.values import Workflow
from horae.model.workflows.reading.workflow import parse_workflow, render_workflow

MOST_TEXT = 32 * 1024
MOST_ARGS = 1024
MOST_REDIRECTS = 10
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
_COMMAND = 'Write "python report.py", ["python", "report.py"] or {"shell": "python report.py | gzip > report.gz"}.'
_PYTHON = 'Write the function\'s name, as "digest", or {"function": "digest", "isolation": "process"}.'
_HTTP = 'Write a URL, or {"url": "https://...", "method": "POST", "headers": {}, "body": {}, "expect": ["2xx"]}.'
_REDIRECTS = f"Give the number of redirects to follow: 0 to {MOST_REDIRECTS}."
_FUNCTION = re.compile(r"[^\W\d][\w.:-]{0,254}")
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}[$]?")
# No shell variable has a dot or a quoted member in its name, so the user meant an expression.
_FILLED = re.compile(r"""\$\{\s*params\s*(?:\.\s*(\w+)|\[\s*["'](\w+)["']\s*\])""")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
_EXPECT = re.compile(r"[1-5](?:xx|\d\d)")
_URL = re.compile(r"(?:https?://[^\s/?#]+\S*)|(?:https?://.*|)\$\{.+|secret://\S+", re.IGNORECASE)


def parse_command(value: Any) -> Task:
    """Read a command.

    A text is split into words as a shell would do, but no shell runs. A list is argv. {"shell": ...} is a shell line.
    """
    if isinstance(value, str):
        return CommandTask(argv=_split(a_text(value, "command", most=MOST_TEXT, least=1), "command"))
    if isinstance(value, list):
        return CommandTask(argv=_argv(value, "command"))
    given = an_object(value, "command", _COMMAND)
    refuse_unknown(given, ("argv", "shell", "cwd", "limits", "user"), "command", "command.")
    if ("argv" in given) == ("shell" in given):
        raise BadInput("command needs either argv or shell.", _COMMAND, field="command")
    cwd = given.get("cwd")
    directory = None if cwd is None else _template(a_text(cwd, "command.cwd", most=4096, least=1), "command.cwd")
    limits, user = read_limits(given.get("limits"), "command.limits"), _user(given.get("user"))
    if "shell" in given:
        return CommandTask(shell=_shell(given["shell"]), cwd=directory, limits=limits, user=user)
    argv = given["argv"]
    if isinstance(argv, str):
        words = _split(a_text(argv, "command.argv", most=MOST_TEXT, least=1), "command.argv")
    else:
        words = _argv(argv, "command.argv")
    return CommandTask(argv=words, cwd=directory, limits=limits, user=user)


def _shell(value: Any) -> str:
    """Read a shell line. It is never a template, because filled-in values would be parsed as shell code."""
    line = a_text(value, "command.shell", most=MOST_TEXT, least=1)
    filled = _FILLED.search(line)
    if filled is not None:
        name = filled[1] or filled[2]
        raise BadInput(
            f"A shell line cannot have placeholders, and this one has {filled[0]}...",
            f'Pass the value as an environment variable, "env": {{"{name.upper()}": "${{params.{name}}}"}}, and write'
            f' "${name.upper()}", including the quotes, in the shell line. Or give the command as a list of arguments,'
            " which runs without a shell.",
            field="command.shell",
        )
    return line


def _user(value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not _USER.fullmatch(value):
        raise BadInput("command.user is not a user's name.", 'Write "backup".', field="command.user")
    return value


def _split(text: str, field: str) -> tuple[str, ...]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        remedy = 'Close the quotation, or give a list: ["echo", "it\'s"].'
        raise BadInput(f"{field} cannot be split into words: {error}.", remedy, field=field) from None
    return _argv(words, field)


def _argv(words: Any, field: str) -> tuple[str, ...]:
    given = a_list(words, field, _COMMAND, MOST_ARGS)
    if not given or not given[0]:
        raise BadInput(f"{field} names no program.", _COMMAND, field=field)
    return tuple(
        _template(a_text(word, f"{field}[{i}]", most=MOST_TEXT), f"{field}[{i}]") for i, word in enumerate(given)
    )


def _template(text: str, field: str) -> str:
    """Return a text after compiling its `${...}` expressions, to check them."""
    compile_template(text, field)
    return text


def parse_python(value: Any) -> Task:
    given = {"function": value} if isinstance(value, str) else an_object(value, "python", _PYTHON)
    refuse_unknown(given, ("function", "isolation", "limits"), "python", "python.")
    if "function" not in given:
        raise BadInput("python names no function.", _PYTHON, field="python.function")
    function = a_text(given["function"], "python.function", most=255, least=1)
    if not _FUNCTION.fullmatch(function):
        raise BadInput(f"{function[:60]!r} is not the name of a function.", _PYTHON, field="python.function")
    isolation = given.get("isolation")
    chosen: Any = None if isolation is None else one_of(isolation, "python.isolation", ("thread", "process"))
    limits = read_limits(given.get("limits"), "python.limits")
    if limits != NO_LIMITS and chosen == "thread":
        raise BadInput(
            "Limits need a process, because threads share their resources.",
            'Remove `isolation`, or choose "process".',
            field="python.limits",
        )
    return PythonTask(function=function, isolation=chosen, limits=limits)


def parse_http(value: Any) -> Task:
    given = {"url": value} if isinstance(value, str) else an_object(value, "http", _HTTP)
    refuse_unknown(given, ("url", "method", "headers", "body", "expect", "redirects"), "http", "http.")
    if "url" not in given:
        raise BadInput("http has no url.", _HTTP, field="http.url")
    method, headers = given.get("method", "POST"), given.get("headers")
    compile_tree(given.get("body"), "http.body")
    return HttpTask(
        url=_url(given["url"]),
        method=one_of(method.upper() if isinstance(method, str) else method, "http.method", METHODS),
        headers=_headers({} if headers is None else headers),
        body=given.get("body"),
        expect=_expect(given.get("expect", ["2xx"])),
        redirects=an_int(given.get("redirects", 0), "http.redirects", 0, MOST_REDIRECTS, _REDIRECTS),
    )


def _url(value: Any) -> str:
    url = _template(a_text(value, "http.url", most=8192, least=1), "http.url")
    if not _URL.fullmatch(url):
        raise BadInput(f"{url[:60]!r} is not an http or https URL.", _HTTP, field="http.url")
    return url


def _headers(value: Any) -> dict[str, str]:
    given = an_object(value, "http.headers", _HTTP)
    if len(given) > 64:
        raise BadInput(f"http.headers has {len(given)} entries.", "At most 64 are allowed.", field="http.headers")
    headers = {}
    for name, text in given.items():
        field = f"http.headers.{name[:60]}"
        content = _template(a_text(text, field, most=8192), field)
        if not _HEADER.fullmatch(name) or "\n" in content or "\r" in content:
            raise BadInput(f"{name[:60]!r} is not a valid header.", "A header is one line of text.", field=field)
        headers[name] = content
    return headers


def _expect(value: Any) -> tuple[str, ...]:
    remedy = 'Write ["2xx"] or [200, 404].'
    given = value if isinstance(value, list) else [value]
    expected = tuple(str(status) for status in a_list(given, "http.expect", remedy, 32))
    for status in expected:
        if not _EXPECT.fullmatch(status):
            raise BadInput(f"{status[:20]!r} is not a status.", remedy, field="http.expect")
    if not expected:
        raise BadInput("http.expect names no status.", remedy, field="http.expect")
    return expected


def render_task(task: Task, names: Mapping[str, str]) -> tuple[str, Any]:
    """Return the field and the value of a task, in the shortest form; `names` are the names of jobs by id."""
    if isinstance(task, Workflow):
        return "workflow", render_workflow(task, names)
    if isinstance(task, CommandTask):
        return "command", _render_command(task)
    if isinstance(task, PythonTask):
        more = {"isolation": task.isolation, "limits": RESOURCE_LIMITS.write(task.limits)}
        said = {name: value for name, value in more.items() if value}
        return "python", {"function": task.function} | said if said else task.function
    body = {} if task.body is None else {"body": task.body}
    headers = {"headers": task.headers} if task.headers else {}
    redirects = {"redirects": task.redirects} if task.redirects else {}
    asked = {"url": task.url, "method": task.method, **headers, **body, "expect": list(task.expect), **redirects}
    return "http", asked


def _render_command(task: CommandTask) -> Any:
    more = {"cwd": task.cwd, "limits": RESOURCE_LIMITS.write(task.limits), "user": task.user}
    said = {name: value for name, value in more.items() if value}
    if task.shell is not None:
        return {"shell": task.shell} | said
    return {"argv": list(task.argv)} | said if said else list(task.argv)


PARSERS: dict[str, Callable[[Any], Task]] = {
    "command": parse_command,
    "python": parse_python,
    "http": parse_http,
    "workflow": parse_workflow,
}
