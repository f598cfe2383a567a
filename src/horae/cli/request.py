"""Commands that only send a request. Each calls a method of the SDK and has its parameters as arguments and options.

Help texts, types and names come from the method, which `python -m tools.sdk` generates from a route.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import click

from horae.cli.output import Column
from horae.cli.remote import Api, page_options, remote
from horae.cli.times import TIME
from horae.cli.values import read_json
from horae.client.client import Client

Given = dict[str, Any]  # the arguments and options of a call, by the names of the method's parameters
Show = Callable[[Api, Any, Given], None]
PAGING = frozenset({"limit", "cursor"})
UNOFFERED = PAGING | {"self", "if_match"}  # parameters that do not become options here
_ABOUT = re.compile(r"`(\w+)`: ")


def request(
    group: click.Group,
    path: str,
    show: Show,
    *,
    examples: tuple[str, ...],
    name: str = "",
    called: Mapping[str, str] = {},
) -> None:
    """Add a command that calls a method of the client, such as "queues.pause", and shows the answer.

    `called` gives parameters other names on the command line: "--for" makes an option, "job" an argument, and
    "name=schedule" an argument with the default "schedule".
    """
    method = _method(path)
    about, helps = _documented(method)
    parameters = [one for one in inspect.signature(method).parameters.values() if one.name not in UNOFFERED]

    async def work(api: Api, **given: Any) -> None:
        show(api, await attrgetter(path)(api.client)(**given), given)

    command = remote(work)
    if inspect.signature(method).parameters.keys() >= PAGING:
        command = page_options(command)
    for parameter in reversed(parameters):
        command = _offer(parameter, called.get(parameter.name, ""), helps.get(parameter.name, ""))(command)
    verb = name or path.rpartition(".")[2].replace("_", "-")
    text = _in_options(about, verb, [one.name for one in parameters if one.default is not one.empty])
    brief = re.split(r"[;:.]\s", f"{text} ")[0]
    group.command(verb, help=text, short_help=f"{brief}.", examples=examples)(command)


def _method(path: str) -> Callable[..., Any]:
    """Return a method of the client by its dotted path."""
    found: Any = Client
    *parts, verb = path.split(".")
    for part in parts:
        found = inspect.get_annotations(found)[part]
    method: Callable[..., Any] = getattr(found, verb)
    return method


def _documented(method: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """Return the description of a method and of its parameters, from its docstring."""
    paragraphs = [" ".join(part.split("\n")) for part in (inspect.getdoc(method) or "").split("\n\n")]
    helps: dict[str, str] = {}
    if _ABOUT.match(paragraphs[-1]):
        _, *pairs = _ABOUT.split(paragraphs.pop())
        helps = {name: text.strip().replace("`", '"') for name, text in zip(pairs[::2], pairs[1::2], strict=True)}
    return "\n\n".join(paragraphs), helps


def _in_options(text: str, verb: str, options: Iterable[str]) -> str:
    """Turn a method's description into a command's, with options instead of parameters and "Show" for "Read"."""
    for name in (*options, *PAGING):
        text = text.replace(f"`{name}`", f"--{name.replace('_', '-')}")
    return f"Show{text.removeprefix('Read')}" if verb == "show" and text.startswith("Read ") else text


def _offer(parameter: inspect.Parameter, called: str, about: str) -> Callable[..., Any]:
    """Return a decorator that adds a parameter to a command: as an argument if it is required, else as an option.

    `called` is the parameter's name on the command line (see `request`), `about` its help text.
    """
    needed = parameter.default is parameter.empty
    if not called.startswith("-") and (called or needed):
        name, _, default = (called or parameter.name).partition("=")
        required = needed and not default
        metavar = name.upper() if required else f"[{name.upper()}]"
        given: dict[str, Any] = {"default": default} if default else {}  # for click, even None is a default
        return click.argument(parameter.name, metavar=metavar, required=required, **given)
    kind, many = _kind(parameter.annotation)
    flag = called or f"--{(parameter.name.removesuffix('s') if many else parameter.name).replace('_', '-')}"
    settings = {"multiple": many, **_typed(kind, flag)}
    is_json = settings.get("metavar") == "JSON"
    more = "; repeatable" if many else "; @FILE reads it from a file, - from the input" if is_json else ""
    settings["help"] = f"{about.removesuffix('.')}{more}." if about else ""
    if bool in (kind, parameter.annotation) and parameter.default is None:
        flag = f"{flag}/--no-{flag[2:]}"
    return click.option(flag, parameter.name, required=needed, **settings)


def _kind(annotation: Any) -> tuple[Any, bool]:
    """Return the type of one value, and whether several values may be given."""
    if get_origin(annotation) in (Union, UnionType):
        parts = [part for part in get_args(annotation) if part is not NoneType]
        if all(get_origin(part) is Literal for part in parts):
            return Literal[tuple(value for part in parts for value in get_args(part))], False
        return next((part for part in parts if part in (timedelta, datetime)), parts[0]), False
    if get_origin(annotation) not in (None, Literal, dict):
        return get_args(annotation)[0], True
    return annotation, False


def _typed(kind: Any, flag: str) -> dict[str, Any]:
    """Return the click settings that parse a value of a type and describe it in the help."""
    if get_origin(kind) is Literal:
        return {"type": click.Choice(get_args(kind))}
    if kind is bool:
        return {"is_flag": True, "default": None}
    if kind in (int, float):
        return {"type": kind, "metavar": "N"}
    if kind is datetime:
        return {"type": TIME}
    if kind is Any or get_origin(kind) is dict:
        return {"metavar": "JSON", "callback": lambda *read: None if read[2] is None else read_json(read[2], flag)}
    return {"metavar": "SPAN" if kind is timedelta else "TEXT" if flag in TEXTS else flag.rpartition("-")[2].upper()}


TEXTS = ("--reason", "--comment", "--search", "--text")  # options with the placeholder TEXT


def lists(columns: Sequence[Column], empty: str) -> Show:
    """Return a function that shows a list as a table, or the text `empty` for an empty list."""
    return lambda api, page, given: api.out.list(page.raw, columns, empty)


def one(api: Api, found: Any, given: Given) -> None:
    """Show all fields of one object."""
    api.out.one(found.raw)


def message(sentence: str | Callable[[Any, Given], str], **document: Any) -> Show:
    """Return a function that prints a sentence about the answer of a request.

    Programs get the answer instead; if there is none, they get the arguments of the call and `document`.
    """

    def show(api: Api, answer: Any, given: Given) -> None:
        raw = {**given, **document} if answer is None else answer.raw
        if not api.out.is_for_people:
            return api.out.document(raw)
        api.out.say(sentence.format_map({**given, **raw}) if isinstance(sentence, str) else sentence(answer, given))
        return None

    return show
