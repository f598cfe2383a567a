"""Documentation stays true: links have targets, and everything that exists is documented."""

import ast
import json
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import msgspec
import pytest

from horae.config.settings import TABLE
from horae.errors import HoraeError
from horae.model.definitions.job import JOB
from horae.model.definitions.job_view import JobView
from horae.model.executions.execution_view import ExecutionView
from horae.server.routes.executions.submission import ExecutionBody
from horae.server.routes.table import ROUTES
from tests.docs import tables
from tests.docs.pages import PAGES, ROOT, anchors, first_cells, headings, links, name, section
from tests.marks import sources

DOCS = ROOT / "docs"


def page(title: str) -> str:
    return (DOCS / title).read_text()


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_every_link_leads_somewhere(path):
    dead = []
    for target in links(path):
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        place, _, anchor = target.partition("#")
        found = (path.parent / place).resolve() if place else path
        if not found.exists() or (anchor and found.suffix == ".md" and anchor not in anchors(found)):
            dead.append(target)
    assert dead == []


def test_every_page_can_be_reached():
    """Check that every page is reachable from README.md by links."""
    seen: set[Path] = set()
    todo = [ROOT / "README.md"]
    while todo:
        at = todo.pop()
        seen.add(at)
        found = {(at.parent / link.partition("#")[0]).resolve() for link in links(at) if "://" not in link}
        todo += [path for path in found if path.suffix == ".md" and path not in seen]
    assert [name(path) for path in PAGES if path not in seen] == []


@pytest.mark.parametrize("part", tables.PARTS)
def test_generated_parts_are_up_to_date(part):
    assert tables.written(part) == tables.PARTS[part][1]().strip(), "Run: python -m tests.docs.tables"


def test_every_route_is_documented():
    text = page("rest.md")
    assert [f"{r.method} {r.path}" for r in ROUTES if f"`{r.method} {r.path}`" not in text] == []


def documented(title: str, heading: str) -> set[str]:
    return set(first_cells(section(page(title), heading)))


def fields_of(view: type[msgspec.Struct]) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(view)}


def test_every_field_of_a_job_and_of_an_execution_is_documented():
    job = documented("rest.md", "A job")
    assert set(JOB.names) - job == set()
    assert fields_of(JobView) - job == set()
    execution = documented("rest.md", "An execution")
    assert fields_of(ExecutionView) - execution == set()
    assert fields_of(ExecutionBody) - execution == set()


def errors() -> Iterator[type[HoraeError]]:
    for module, text in sources().items():
        if "\nclass " in text and ("HoraeError" in text or "horae.errors" in text):
            import_module(module)
    todo = [HoraeError]
    while todo:
        error = todo.pop()
        if (
            error.__module__.startswith("horae.") and error.__name__ != "InternalError"
        ):  # users never see it under this name
            yield error
        todo += error.__subclasses__()


def test_every_error_is_documented_with_its_status():
    rows = set(re.findall(r"^\| `([\w-]+)` \| `(\w+)` \| (\d+) \| (\d+) \|", page("errors.md"), re.MULTILINE))
    assert rows == {(e.slug, e.__name__, str(e.status), str(e.exit_code)) for e in errors()}


def failure_types() -> set[str]:
    """Return the names that Horae itself gives to failures.

    They are in `failed("RunTimeout", ...)`, in `Failure(type="Lost", ...)` and in `failure = "SecretUnavailable"`.
    """
    found = set()
    for text in sources().values():
        for node in ast.walk(ast.parse(text)):
            match node:
                case ast.Call(func=ast.Name(id="failed"), args=[name, *_]):
                    found.add(name)
                case ast.Call(func=ast.Name(id="Failure" | "ReportedFailure"), keywords=keywords):
                    found |= {keyword.value for keyword in keywords if keyword.arg == "type"}
                case ast.Assign(targets=[ast.Name(id="failure")], value=name):
                    found.add(name)
    return {node.value for node in found if isinstance(node, ast.Constant)}


def test_every_failure_of_an_execution_is_documented():
    text = section(page("errors.md"), "What an execution fails with")
    assert failure_types() | {"GiveUp", "Retry", "SignalTimeout"} == {
        word for word in first_cells(text) if word[0].isupper()
    }


async def test_the_example_of_an_error_is_one(api):
    shown = json.loads(re.search(r"```json\n(.*?)```", page("errors.md"), re.DOTALL)[1])
    own = {"x-request-id": shown["requestId"]}
    answer = await api.post("/api/v1/jobs", json={"name": "x", "command": "true", "retires": 3}, headers=own)
    assert shown == answer.json()


def test_every_setting_is_documented():
    assert [row.variable for row in TABLE.values() if row.variable not in page("configuration.md")] == []


def test_decisions_are_numbered_and_have_one_shape():
    paths = sorted((DOCS / "decisions").glob("[0-9]*.md"))
    assert [path.name[:4] for path in paths] == [f"{i:04}" for i in range(1, len(paths) + 1)]
    shape = ["Context", "Decision", "Consequences", "Evidence"]
    assert [name(path) for path in paths if headings(path.read_text())[1:] != shape] == []
    index = (DOCS / "decisions" / "README.md").read_text()
    assert [path.name for path in paths if f"({path.name})" not in index] == []
