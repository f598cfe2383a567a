"""Searches of Python source for forbidden code; test_source.py defines what is forbidden in which modules."""

import ast
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import accumulate

CLOCK = {
    "time.time",
    "time.time_ns",
    "time.monotonic",
    "time.monotonic_ns",
    "time.clock_gettime",
    "time.clock_gettime_ns",
}
CLOCK |= {"time.localtime", "time.gmtime", "time.ctime", "time.sleep"}
CLOCK |= {"datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today", "datetime.date.today"}
STOPWATCH = {
    "time.perf_counter",
    "time.perf_counter_ns",
    "time.process_time",
    "time.process_time_ns",
    "time.thread_time",
}
CHANCE = {"random", "uuid.uuid1", "uuid.uuid4", "uuid_utils"}
SECRETS = {"secrets", "os.urandom", "random.SystemRandom"}
SLEEP = {"asyncio.sleep", "anyio.sleep", "time.sleep"}
CODE_FROM_DATA = {"pickle", "marshal", "shelve", "dbm", "eval", "exec", "yaml.load", "yaml.load_all"}
CODE_FROM_DATA |= {"yaml.full_load", "yaml.unsafe_load", "yaml.unsafe_load_all"}
MAKE = {"mkdir", "makedirs", "write_text", "write_bytes"}
WRITES = {"w", "wb", "a", "ab", "x", "xb", "w+", "wb+", "a+", "ab+", "x+", "xb+", "wt", "at", "xt"}
PRINT = {"click.echo", "click.secho", "click.style", "click.echo_via_pager", "rich.print", "rich.console"}
LOOP_TIMERS = {"call_later", "call_at"}

ALLOWED = {"random.Random"}  # a type; a generator when it has a seed


PAGE = re.compile(r"docs/[\w-]+\.md")


@lru_cache(maxsize=1)
def parsed(source: str) -> list[ast.AST]:
    """Return all nodes of a file's tree; cached, because several checks use it."""
    return list(ast.walk(ast.parse(source)))


def mentions(source: str, words: Iterable[str]) -> bool:
    """Return whether a text contains any of these words, because parsing it takes a hundred times as long."""
    return any(word in source for word in words)


def uses(source: str, forbidden: set[str]) -> Iterator[str]:
    """Yield every use of a forbidden dotted name, or of a name in a forbidden module, with its line."""
    heads = "|".join({name.partition(".")[0] for name in forbidden})
    if not re.search(rf"\b(?:import|from)\b[^\n]*\b(?:{heads})\b|\b(?:eval|exec)\b", source):
        return  # none of the modules is imported
    nodes = parsed(source)
    names = dict(_imported(nodes))
    harmless = set(_zero_sleeps(nodes, names))
    for node in nodes:
        for name in _mentioned(node, names):
            if name not in ALLOWED and node not in harmless and not forbidden.isdisjoint(_heads(name)):
                yield f"line {node.lineno}: {name}"


def unseeded(source: str) -> Iterator[str]:
    """Yield generators without a seed: their randomness cannot be reproduced."""
    if not mentions(source, ("Random",)):
        return
    nodes = parsed(source)
    names = dict(_imported(nodes))
    for call in _calls(nodes):
        if _dotted(call.func, names) == "random.Random" and not call.args:
            yield f"line {call.lineno}: Random() without a seed"


def loop_time(source: str) -> Iterator[str]:
    """Yield readings and timers of the event loop's own clock."""
    if not mentions(source, (*LOOP_TIMERS, ".time()")):
        return
    for call in _calls(parsed(source)):
        if not isinstance(call.func, ast.Attribute):
            continue
        owner = ast.unparse(call.func.value)
        if call.func.attr in LOOP_TIMERS or (call.func.attr == "time" and "loop" in owner):
            yield f"line {call.lineno}: {owner}.{call.func.attr}"


def made_for_all(source: str) -> Iterator[str]:
    """Yield calls that create a folder or a file with a mode that depends on the umask."""
    if not mentions(source, (*MAKE, "open")):
        return
    nodes = parsed(source)
    names = dict(_imported(nodes))
    for call in _calls(nodes):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        given = (*call.args, *(keyword.value for keyword in call.keywords))
        opens = name == "open" and any(isinstance(one, ast.Constant) and one.value in WRITES for one in given)
        creates = _dotted(call.func, names) == "os.open" and "O_CREAT" in ast.unparse(call)
        if name in MAKE or creates or opens:
            yield f"line {call.lineno}: {ast.unparse(call.func)}"


def imports(source: str, words: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield every imported module or name, anywhere in the file, with its line; nothing without one of the words."""
    if not mentions(source, words):
        return
    for node in parsed(source):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def _imported(nodes: list[ast.AST]) -> Iterator[tuple[str, str]]:
    """Return the full name of each imported local name."""
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield (alias.asname, alias.name) if alias.asname else (alias.name.split(".")[0],) * 2
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names)


def _mentioned(node: ast.AST, names: dict[str, str]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name != "random")
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield from (f"{node.module}.{alias.name}" for alias in node.names if node.module != "asyncio")
    elif isinstance(node, ast.Name):
        if node.id in {"eval", "exec"} or "." in names.get(node.id, ""):
            yield names.get(node.id, node.id)
    elif isinstance(node, ast.Attribute) and (name := _dotted(node, names)):
        yield name


def _zero_sleeps(nodes: list[ast.AST], names: dict[str, str]) -> Iterator[ast.AST]:
    """Find `asyncio.sleep(0)`, which does not wait and only lets other tasks run."""
    for call in _calls(nodes):
        zero = len(call.args) == 1 and isinstance(call.args[0], ast.Constant) and call.args[0].value == 0
        if zero and _dotted(call.func, names) in SLEEP:
            yield call.func


def _calls(nodes: list[ast.AST]) -> Iterator[ast.Call]:
    return (node for node in nodes if isinstance(node, ast.Call))


def _heads(name: str) -> Iterator[str]:
    """Return a dotted name and the modules that contain it."""
    return accumulate(name.split("."), "{}.{}".format)


def _dotted(node: ast.AST, names: dict[str, str]) -> str | None:
    """Return the full name of an imported expression."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute) and (owner := _dotted(node.value, names)):
        return f"{owner}.{node.attr}"
    return None


def pages_named(source: str) -> Iterator[str]:
    """Yield texts that name a page of the documentation, except docstrings and other unused texts."""
    if not mentions(source, ("docs/",)):
        return
    unused = {id(node.value) for node in parsed(source) if isinstance(node, ast.Expr)}
    for node in parsed(source):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in unused:
            if page := PAGE.search(node.value):
                yield f"line {node.lineno}: {page[0]}"
