"""A real server answers while a tenant sends expressions and schemas designed to block it."""

import threading
import time

from tests.model.expression_attacks import DATA, LITERALS, OVER_DATA
from tests.model.test_schema_cost import REFUSED

MOST_SECONDS = 10.0  # for one answer, on a busy machine; without bounds it takes minutes


def test_the_server_answers_during_hostile_definitions_and_submissions(fleet):
    fleet.add_server("s1")
    steps = [{"name": "a", "command": "true", "when": f"${{{source}}}"} for source in LITERALS.values()]
    bodies = [{"workflow": {"steps": [step]}} for step in steps]
    bodies += [{"command": "true", "sequence": f"${{{source}}}"} for source in OVER_DATA.values()]
    bodies += [{"command": "true", "schema": schema} for schema in REFUSED.values()]
    answers = []

    def attack():
        for i, body in enumerate(bodies):
            named = {"name": f"hostile-{i}", **body}
            answers.append(fleet.request("POST", "/jobs?dryRun=true", named).status_code)
            made = fleet.request("POST", "/jobs", named).status_code
            answers.append(made)
            if made == 201 and "sequence" in body:
                params = {"job": named["name"], "params": {name: DATA[name] for name in ("l", "d")}}
                answers.append(fleet.request("POST", "/executions", params).status_code)

    attacking = threading.Thread(target=attack)
    attacking.start()
    slowest = 0.0
    while attacking.is_alive():
        began = time.monotonic()
        assert fleet.request("GET", "/me").status_code == 200
        slowest = max(slowest, time.monotonic() - began)
        attacking.join(0.05)

    assert slowest < MOST_SECONDS
    assert len(answers) > 2 * len(bodies)
    assert set(answers) <= {200, 201, 400}
    assert answers.count(400) > len(REFUSED)
