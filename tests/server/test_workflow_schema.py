"""The OpenAPI document describes every workflow that is accepted."""

from typing import Any

import jsonschema_rs

from horae.server.openapi import build
from horae.server.routes.table import ROUTES
from tests.model.workflow.corpus import answer, workflows


def says_nothing(workflow: Any) -> bool:
    """Return whether a step gives `retry` or `timeouts` an empty value of another type, which counts as none."""
    steps = workflow["steps"] if isinstance(workflow, dict) else workflow
    return any(field in step and not step[field] for step in steps for field in ("retry", "timeouts"))


def test_workflows_that_are_accepted_fit_the_schema_and_misspelled_fields_of_steps_do_not():
    components = build(ROUTES)["components"]
    schema = jsonschema_rs.validator_for({"$ref": "#/components/schemas/JobBody", "components": components})
    accepted = [one for one in workflows() if answer(one)[0] == "accepted" and not says_nothing(one)]
    assert len(accepted) > 800
    assert [one for one in accepted if not schema.is_valid({"name": "w", "workflow": one})] == []
    assert not schema.is_valid({"name": "w", "workflow": [{"name": "a", "job": "j", "retrys": 2}]})
