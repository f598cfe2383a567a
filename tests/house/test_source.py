"""Rules for the code beyond those of the linters."""

import ast
import re
from itertools import chain
from pathlib import Path
from types import ModuleType

import pytest

import bench
import horae
from horae import env, errors, private, testing
from horae.cli import output, terminal
from horae.engine.base import sealing, tokens
from horae.features.artifacts import cli as artifacts
from horae.model.documents import schema
from horae.model.expressions import loops, nodes, parse, patterns, program, template
from horae.model.fields import derived
from horae.store.schema import all_tables, columns
from horae.worker import runners
from horae.worker.processes import guard, processes
from tests.house import source

ROOT = Path(__file__).parents[2]
PACKAGE = Path(horae.__file__).parent
BENCHES = Path(bench.__file__).parent
WORLD = source.CLOCK | source.STOPWATCH | source.CHANCE | source.SECRETS | source.SLEEP

# Modules that may use the outside world, and which parts of it.
EXEMPT = {
    env: WORLD,
    tokens: source.SECRETS,
    sealing: source.SECRETS,
    guard: {"time.monotonic", "os.urandom"},  # a separate program, without Env
    derived: {"eval"},  # compiles a reader from the names in our own field tables, never from user input
    bench: source.STOPWATCH,
}
DATABASES = {"alembic", "asyncpg", "pysqlite3", "sqlalchemy", "sqlite3"}
# Files for all users, and files in a folder that is already private.
NOT_PRIVATE = (private, testing, artifacts, runners, processes)
PRINTING = (output, terminal)
# Only these modules limit the work of expressions and schemas, so no other may use the evaluators.
BOUNDED_BY: dict[str, tuple[ModuleType, ...]] = {
    program.__name__: (template,),
    parse.__name__: (program,),
    nodes.__name__: (program, parse, loops),
    "jsonschema_rs": (schema, patterns),
    "cel": (),
}
EVALUATORS = ("horae.model.expressions", "horae.model import", "jsonschema_rs", "import cel", "from cel")
WAITS = ROOT / "tests" / "waiting.py"


def python_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def place(path: Path) -> str:
    """Return a module's dotted name."""
    top = BENCHES if path.is_relative_to(BENCHES) else PACKAGE
    parts = path.relative_to(top.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def within(name: str, *modules: ModuleType) -> bool:
    """Return whether a module is one of these, or in one of these packages."""
    return any(f"{name}.".startswith(f"{module.__name__}.") for module in modules)


def forbidden_in(name: str) -> set[str]:
    exempt = (allowed for module, allowed in EXEMPT.items() if within(name, module))
    return (WORLD | source.CODE_FROM_DATA) - set(chain.from_iterable(exempt))


def wrong_in(name: str, text: str) -> list[str]:
    found = list(source.uses(text, forbidden_in(name)))
    if name != env.__name__:
        found += [*source.unseeded(text), *source.loop_time(text)]
    return found


def test_time_ids_and_randomness_come_from_env_and_data_is_never_code():
    paths = (*python_files(PACKAGE), *python_files(BENCHES))
    wrong = [f"{place(path)}, {use}" for path in paths for use in wrong_in(place(path), path.read_text())]
    assert wrong == []


def test_every_error_is_made_where_it_is_raised():
    """An error that is kept in a module collects the frames of all that raise it."""
    kinds = "|".join(name for name, kind in vars(errors).items() if isinstance(kind, type))
    kept = re.compile(rf"^\w+.* = (?:{kinds})\(", re.MULTILINE)
    wrong = [
        f"{place(path)}: {found[0]}" for path in python_files(PACKAGE) for found in kept.finditer(path.read_text())
    ]
    assert wrong == [], "Return it from a function."


def test_folders_and_files_are_created_for_their_owner_only():
    paths = (path for path in python_files(PACKAGE) if not within(place(path), *NOT_PRIVATE))
    wrong = [f"{place(path)}, {use}" for path in paths for use in source.made_for_all(path.read_text())]
    assert wrong == [], "Make them with horae.private."


def test_commands_print_by_the_function_that_escapes_control_characters():
    commands = [path for path in python_files(PACKAGE) if "cli" in place(path).split(".")]
    paths = [path for path in commands if not within(place(path), *PRINTING)]
    wrong = [f"{place(path)}, {use}" for path in paths for use in source.uses(path.read_text(), source.PRINT)]
    assert wrong == [], "Print with horae.cli.terminal."


def test_no_message_refers_to_a_page_outside_the_package():
    wrong = [f"{place(path)}, {use}" for path in python_files(PACKAGE) for use in source.pages_named(path.read_text())]
    assert wrong == [], "Say in the message itself what to do."


def test_tests_do_not_sleep():
    paths = (path for path in python_files(ROOT / "tests") if path != WAITS)
    wrong = [
        f"{path.relative_to(ROOT)}, {use}" for path in paths for use in source.uses(path.read_text(), source.SLEEP)
    ]
    assert wrong == [], "Wait for a condition with tests/waiting.py, or move a clock."


def test_only_the_store_imports_databases_and_workers_do_not_import_the_store():
    wrong = []
    for path in python_files(PACKAGE):
        layers = {*place(path).split(".")}
        for line, name in source.imports(path.read_text(), DATABASES | ({"store"} if "worker" in layers else set())):
            known, *inner = name.split(".")
            if known in DATABASES and "store" not in layers:
                wrong.append(f"{place(path)}, line {line}: {name}")
            if known == horae.__name__ and "store" in inner and "worker" in layers:
                wrong.append(f"{place(path)}, line {line}: {name}")
    assert wrong == []


def test_metadata_is_used_only_where_all_tables_are_imported():
    """`columns.metadata` contains only tables whose modules were imported."""
    paths = (path for top in (PACKAGE, BENCHES, ROOT / "tests", ROOT / "tools") for path in python_files(top))
    asking = [
        str(path.relative_to(ROOT))
        for path in paths
        for _, name in source.imports(path.read_text(), ("metadata",))
        if name == f"{columns.__name__}.metadata"
    ]
    assert asking == [str(Path(all_tables.__file__).relative_to(ROOT))]


def test_every_package_has_a_docstring():
    folders = {path.parent for path in (*python_files(PACKAGE), *python_files(BENCHES))}
    silent = [
        str(folder)
        for folder in sorted(folders)
        if not (init := folder / "__init__.py").exists() or not docstring(init)
    ]
    assert silent == []


def docstring(path: Path) -> str | None:
    return ast.get_docstring(ast.parse(path.read_text()))


@pytest.mark.parametrize(
    "text",
    [
        "import time\ntime.time()",
        "from time import monotonic as now\nnow()",
        "import datetime as d\nd.datetime.now(d.UTC)",
        "from datetime import datetime\nwhen = datetime.utcnow",
        "import random\nrandom.shuffle([])",
        "from random import choice",
        "from random import Random\nRandom()",
        "from random import SystemRandom",
        "import uuid\nuuid.uuid4()",
        "import secrets",
        "import os\nos.urandom(8)",
        "import asyncio\nasync def f():\n    await asyncio.sleep(1)",
        "import asyncio\nasyncio.get_running_loop().time()",
        "loop.call_later(1, print)",
        "import pickle",
        "from yaml import load",
        "import yaml\nyaml.load('a')",
        "eval('1')",
        "exec('1')",
        "import time\ntime.perf_counter()",
    ],
)
def test_the_check_finds_forbidden_code(text):
    assert wrong_in("horae.engine.claim", text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (env.__name__, "import time\ntime.time_ns()"),
        (tokens.__name__, "import secrets\nsecrets.token_bytes(32)"),
        (derived.__name__, "eval('1')"),
        (f"{bench.__name__}.throughput", "import time\ntime.perf_counter()"),
        ("horae.engine.claim", "from random import Random\ndef pick(rng: Random): return rng.random()"),
        ("horae.engine.claim", "import random\nrandom.Random(7)"),
        ("horae.engine.claim", "import asyncio\nasync def f():\n    await asyncio.sleep(0)"),
        ("horae.engine.claim", "import yaml\nyaml.safe_load('a')"),
        ("horae.engine.claim", "from datetime import datetime, time\ndatetime.fromtimestamp(0)"),
        ("horae.engine.claim", "clock.time()\nevaluate()\nself.exec()"),
    ],
)
def test_the_check_accepts_allowed_code(name, text):
    assert wrong_in(name, text) == []


def test_expressions_and_schemas_are_evaluated_in_one_place_each():
    wrong = [
        f"{place(path)} imports {module}"
        for path in python_files(PACKAGE)
        for _, name in source.imports(path.read_text(), EVALUATORS)
        for module, allowed in BOUNDED_BY.items()
        if f"{name}.".startswith(f"{module}.") and not within(place(path), *allowed)
    ]
    assert wrong == []
