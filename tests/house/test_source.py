"""What the code may not do, beyond what the linters can say."""

import ast
from itertools import chain
from pathlib import Path

import pytest

from tests.house import source

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "horae"
WORLD = source.CLOCK | source.STOPWATCH | source.CHANCE | source.SECRETS | source.SLEEP

# Who may touch the outside world, and which part of it.
EXEMPT = {
    "env.py": WORLD,
    "engine/tokens.py": source.SECRETS,
    "engine/sealing.py": source.SECRETS,
    "worker/guard.py": {"time.monotonic", "os.urandom"},  # a program of its own, without Env
    "bench/": source.STOPWATCH,
}
DATABASES = {"alembic", "asyncpg", "pysqlite3", "sqlalchemy", "sqlite3"}
# Files for everybody, and files in a folder that is private already.
NOT_PRIVATE = (
    "private.py", "bench/", "testing/", "store/migrations/render.py", "cli/artifacts.py", "worker/runners/",
    "worker/processes.py",
)  # fmt: skip
WAITS = ROOT / "tests" / "waiting.py"


def python_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def place(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def forbidden_in(name: str) -> set[str]:
    exempt = (allowed for prefix, allowed in EXEMPT.items() if name.startswith(prefix))
    return (WORLD - set(chain.from_iterable(exempt))) | source.CODE_FROM_DATA


def wrong_in(name: str, text: str) -> list[str]:
    found = list(source.uses(text, forbidden_in(name)))
    if name != "env.py":
        found += [*source.unseeded(text), *source.loop_time(text)]
    return found


def test_time_ids_and_chance_come_from_env_and_data_is_never_code():
    wrong = [
        f"{place(path)}, {use}" for path in python_files(PACKAGE) for use in wrong_in(place(path), path.read_text())
    ]
    assert wrong == []


def test_folders_and_files_are_made_for_their_owner_alone():
    paths = (path for path in python_files(PACKAGE) if not place(path).startswith(NOT_PRIVATE))
    wrong = [f"{place(path)}, {use}" for path in paths for use in source.made_for_all(path.read_text())]
    assert wrong == [], "Make them with horae.private."


def test_commands_print_by_one_way_that_shows_control_characters():
    paths = [path for path in python_files(PACKAGE / "cli") if path.name not in ("output.py", "terminal.py")]
    wrong = [f"{place(path)}, {use}" for path in paths for use in source.uses(path.read_text(), source.PRINT)]
    assert wrong == [], "Print with horae.cli.terminal."


def test_tests_do_not_sleep():
    paths = (path for path in python_files(ROOT / "tests") if path != WAITS)
    wrong = [
        f"{path.relative_to(ROOT)}, {use}" for path in paths for use in source.uses(path.read_text(), source.SLEEP)
    ]
    assert wrong == [], "Wait for a condition with tests/waiting.py, or move a clock."


def test_only_the_store_knows_databases_and_workers_do_not_know_the_store():
    wrong = []
    for path in python_files(PACKAGE):
        layer = place(path).split("/")[0]
        for line, name in source.imports(path.read_text()):
            if name.split(".")[0] in DATABASES and layer not in {"store", "bench"}:
                wrong.append(f"{place(path)}, line {line}: {name}")
            if name.startswith("horae.store") and layer == "worker":
                wrong.append(f"{place(path)}, line {line}: {name}")
    assert wrong == []


def test_every_package_says_what_it_is():
    folders = {path.parent for path in python_files(PACKAGE)}
    silent = [
        place(folder)
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
def test_the_check_sees_what_is_forbidden(text):
    assert wrong_in("engine/claim.py", text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("env.py", "import time\ntime.time_ns()"),
        ("engine/tokens.py", "import secrets\nsecrets.token_bytes(32)"),
        ("bench/throughput.py", "import time\ntime.perf_counter()"),
        ("engine/claim.py", "from random import Random\ndef pick(rng: Random): return rng.random()"),
        ("engine/claim.py", "import random\nrandom.Random(7)"),
        ("engine/claim.py", "import asyncio\nasync def f():\n    await asyncio.sleep(0)"),
        ("engine/claim.py", "import yaml\nyaml.safe_load('a')"),
        ("engine/claim.py", "from datetime import datetime, time\ndatetime.fromtimestamp(0)"),
        ("engine/claim.py", "clock.time()\nevaluate()\nself.exec()"),
    ],
)
def test_the_check_lets_the_rest_be(name, text):
    assert wrong_in(name, text) == []


def test_expressions_are_computed_and_schemas_checked_in_one_place_each():
    """Only these modules bound the work, so nothing else may use what does it."""
    allowed = {
        "horae.model.cel.program": {"model/template.py"},
        "horae.model.cel.parse": {"model/cel/program.py"},
        "horae.model.cel.nodes": {"model/cel/program.py", "model/cel/parse.py", "model/cel/loops.py"},
        "jsonschema_rs": {"model/schema.py", "model/log_search.py"},
        "cel": set(),
    }
    wrong = [
        f"{place(path)} imports {module}"
        for path in python_files(PACKAGE)
        for _, name in source.imports(path.read_text())
        for module in allowed
        if (name == module or name.startswith(f"{module}.")) and place(path) not in allowed[module]
    ]
    assert wrong == []
