"""Things that the source must not do: run text as a program, or put values into SQL."""

import ast
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType

import pytest

from horae.cli.fleet import autoscale
from horae.features.dead_letters.store import reads as dead_letter_reads
from horae.features.statistics.store import statistics
from horae.store.admission import coarse
from horae.store.copying import transfer
from horae.store.definitions import job_pages
from horae.store.executions.reads import child_lists, execution_lists
from horae.store.expiry import expiry
from horae.store.postgres import connect, fire_partitions, migrate, partitions, statements
from horae.store.tenancy import holdings
from horae.worker.runners import command
from tests.house.source import mentions
from tests.marks import sources

SHELLS = {"os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput", "commands.getoutput"}
SHELL_WORDS = ("shell", "bash", "/sh", '"sh"', "'sh'", "system", "popen", "getoutput", "getstatusoutput")
SHELL_PLACES = (
    command,  # a job may request a shell here
    autoscale,  # runs the command lines given to it by its user
)
RUNS_SQL = {"execute", "executemany", "executescript", "fetch", "fetchrow", "fetchval", "Statement"}
# Modules that build SQL at run time: from table and column names of the schema, from numbered placeholders
# for values and from literal clauses; never from user input. Another file here needs the same review.
PUT_TOGETHER = (
    *(expiry, transfer),
    *(child_lists, coarse, dead_letter_reads, execution_lists, job_pages, holdings, statistics),
    *(connect, fire_partitions, migrate, partitions, statements),
)


def where(found: Callable[[str], Iterable[str]]) -> set[str]:
    """Return the modules in which something is found."""
    return {module for module, text in sources().items() if [*found(text)]}


def named(modules: Iterable[ModuleType]) -> set[str]:
    return {module.__name__ for module in modules}


def shells(source: str) -> Iterator[str]:
    """Yield every way in which a text could become a command line."""
    if not mentions(source, SHELL_WORDS):
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            asks = any(word.arg == "shell" and not _is_false(word.value) for word in node.keywords)
            name = ast.unparse(node.func)
            if (asks and name.startswith(("subprocess.", "asyncio.", "Popen", "run"))) or name in SHELLS:
                yield f"line {node.lineno}: {name}"
            if name.endswith("create_subprocess_shell"):
                yield f"line {node.lineno}: {name}"
        elif isinstance(node, ast.Constant) and node.value in ("/bin/sh", "sh", "bash", "/bin/bash"):
            yield f"line {node.lineno}: {node.value}"


def _is_false(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def sql_put_together(source: str) -> Iterator[str]:
    """Yield every statement whose text is built at run time, not when its module is imported."""
    if not mentions(source, RUNS_SQL):
        return
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
                name = getattr(call.func, "attr", getattr(call.func, "id", ""))
                text = call.args[1 if name == "Statement" else 0] if len(call.args) > (name == "Statement") else None
                if name in RUNS_SQL and isinstance(text, ast.JoinedStr | ast.BinOp):
                    yield f"line {call.lineno}: {ast.unparse(text)[:80]}"


def test_only_command_jobs_with_a_shell_line_reach_a_shell():
    assert where(shells) == named(SHELL_PLACES)


def test_sql_is_not_built_at_run_time():
    assert where(sql_put_together) - named(PUT_TOGETHER) == set()


@pytest.mark.parametrize(
    "text",
    [
        "subprocess.run('ls', shell=True)",
        "os.system('ls')",
        "asyncio.create_subprocess_shell('ls')",
        "argv = ['/bin/sh', '-c', text]",
        "subprocess.Popen(text, shell=asked)",
    ],
)
def test_the_check_finds_shells(text: str):
    assert list(shells(text))


@pytest.mark.parametrize(
    "text",
    [
        "def f(sort):\n    return Statement('x', f'SELECT * FROM jobs ORDER BY {sort}')",
        "def f(c, name):\n    c.execute('SELECT 1 WHERE name = ' + name)",
    ],
)
def test_the_check_finds_sql_built_at_run_time(text: str):
    assert list(sql_put_together(text))


def test_plain_statements_pass():
    assert not list(sql_put_together("ONE = Statement('x', f'SELECT {COLUMNS}')\ndef f(c):\n    c.execute('SELECT 1')"))
    assert not list(shells("subprocess.run(['ls'], shell=False)"))
