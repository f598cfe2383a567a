"""docs/workflows.md: its examples are workflows, and it documents every field, join and name of expressions."""

import msgspec
import pytest
import yaml

from horae.model.definitions.reading.read import parse_definition
from horae.model.definitions.reading.write import render_definition
from horae.model.workflows.decisions.expressions import IN_FOREACH, OF_ERROR, OF_EVENT
from horae.model.workflows.decisions.plan import plan_of
from horae.model.workflows.decisions.values import JOINS
from horae.model.workflows.reading.steps import STEP
from horae.model.workflows.reading.workflow import WORKFLOW
from tests.docs.pages import ROOT, blocks, first_cells, section

PAGE = (ROOT / "docs/workflows.md").read_text()
EXAMPLES = [yaml.safe_load(block) for block in blocks(PAGE, "yaml")]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["name"])
def test_an_example_is_a_workflow(example):
    as_json = msgspec.json.decode(msgspec.json.encode(example))
    spec = parse_definition(as_json, namespace_name="default", created_at=0).spec
    again = parse_definition(render_definition(spec), namespace_name="default", created_at=0).spec
    assert again == spec
    plan_of(spec.task)


def test_every_field_join_and_name_is_documented():
    assert set(first_cells(section(PAGE, "A workflow"))) == {*WORKFLOW.names}
    of_steps = section(PAGE, "A step")
    unnamed = {field for field in STEP.names if f"`{field}`" not in of_steps}
    assert unnamed <= SAID_BY_JOBS | {"every", "maxRuns"}
    assert tuple(first_cells(section(PAGE, "Joins"))) == JOINS
    named = {cell.partition(".")[0] for cell in first_cells(section(PAGE, "Expressions"))}
    assert named == IN_FOREACH | OF_ERROR | OF_EVENT


# Fields of a job that the page does not list one by one, because docs/rest.md does.
SAID_BY_JOBS = {
    *("description", "burst", "sequence", "prefers", "slots", "resources", "affinity", "spread"),
    *("interruptible", "preemptible", "preempts", "durable"),
}
