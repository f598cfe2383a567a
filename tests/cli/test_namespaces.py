"""`horae namespaces`: create, show, change and delete."""

import json

from tests.cli.fake_api import FakeApi, page, run

BILLING = {
    "name": "billing", "description": "", "weight": 2.0, "retention": {"success": "7d"}, "defaults": {},
    "queuePolicy": None, "state": "active", "createdAt": "2027-01-15T07:59:00Z", "updatedAt": "2027-01-15T07:59:00Z",
}  # fmt: skip


def test_a_namespace_is_created_with_its_settings():
    api = FakeApi({"POST /namespaces": BILLING})
    said = "--weight 2 --retention success=7d --retention failed=90d --default retries=3 --default timeout=1h"
    run(api, "namespaces", "create", "billing", *said.split(), "--queue-policy", '{"kind": "fair"}')
    assert api.requests[-1].body == {
        "name": "billing", "weight": 2.0, "retention": {"success": "7d", "failed": "90d"},
        "defaults": {"retries": 3, "timeout": "1h"}, "queuePolicy": {"kind": "fair"},
    }  # fmt: skip


def test_namespaces_are_listed_and_shown():
    api = FakeApi(
        {"GET /namespaces": page(BILLING), "GET /namespaces/billing": BILLING, "GET /me": {"namespace": "billing"}}
    )
    assert run(api, "namespaces", "list").stdout.splitlines()[1].split() == ["billing", "2", "1m", "ago"]
    assert json.loads(run(api, "namespaces", "show", "-o", "json").stdout) == BILLING
    assert json.loads(run(api, "namespaces", "show", "billing", "-o", "json").stdout) == BILLING


def test_fields_not_given_stay_and_none_resets():
    api = FakeApi({"PATCH /namespaces/billing": BILLING})
    run(api, "namespaces", "set", "billing", "--retention", "none", "--default", "none", "--queue-policy", "none")
    run(api, "namespaces", "set", "billing", "--retention", "30d", "--description", "Billing")
    run(api, "namespaces", "set", "billing", "--archive", "all", "--unset", "weight")
    assert [one.body for one in api.requests] == [
        {"retention": None, "defaults": None, "queuePolicy": None},
        {"retention": "30d", "description": "Billing"},
        {"archive": True, "weight": None},
    ]
    assert run(api, "namespaces", "set", "billing").exit_code == 2
    for wrong in (("success=",), ("=7d",), ("success=7d", "30d")):
        flags = [part for text in wrong for part in ("--retention", text)]
        refused = run(api, "namespaces", "set", "billing", *flags)
        assert f"--retention {wrong[-1]} does not give an outcome and a time." in refused.stderr
    refused = run(api, "namespaces", "set", "billing", "--retention", "7d", "--unset", "retention")
    assert "--unset resets retention, which another option sets." in refused.stderr


def test_bounds_of_a_quota_are_changed_or_removed_and_others_stay():
    quota = {"namespace": "billing", "queued": 5, "running": 2, "startsPerSecond": 0.5, "over": "wait"}
    api = FakeApi({"GET /namespaces/billing/quota": quota, "PUT /namespaces/billing/quota": quota})
    said = "--queued none --executions-per-day 7 --starts-per-second 2.5 --unset over"
    run(api, "namespaces", "quota", "billing", *said.split())
    said = {name: value for name, value in api.requests[-1].body.items() if value is not None}
    assert said == {"running": 2, "executionsPerDay": 7, "startsPerSecond": 2.5}
    assert run(api, "namespaces", "quota", "billing", "--running", "0").exit_code == 2


def test_a_namespace_is_deleted():
    api = FakeApi({"DELETE /namespaces/billing": None})
    assert run(api, "namespaces", "delete", "billing").stdout == "Deleted namespace billing.\n"


PART = {
    "namespace": "billing",
    "before": "2027-01-15T07:59:00Z",
    "files": 0,
    "events": 2,
    "records": 1,
    "definitions": 0,
}


def test_a_namespace_is_erased_part_by_part_after_its_name_is_confirmed():
    parts = iter(
        [
            {**PART, "executions": 500, "live": 0, "complete": False},
            {**PART, "executions": 20, "live": 3, "complete": False},
            {**PART, "executions": 3, "live": 0, "complete": True},
        ]
    )
    api = FakeApi({"POST /namespaces/billing/erasure": lambda request: next(parts)})
    assert run(api, "namespaces", "erase", "billing", "--confirm", "other").exit_code == 2
    assert api.requests == []
    done = run(api, "namespaces", "erase", "billing", "--cancel", "--confirm", "billing")
    assert done.stdout == "Erased from namespace billing: 523 executions, 0 files, 6 events, 3 records.\n"
    assert api.requests[0].body == {"confirm": "billing", "cancel": True, "definitions": False}
    assert api.requests[1].body["before"] == PART["before"]


def test_a_timeout_while_cancelled_executions_end_is_reported():
    left = {**PART, "executions": 0, "live": 3, "complete": False}
    api = FakeApi({"POST /namespaces/billing/erasure": left})
    asked = ("namespaces", "erase", "billing", "--cancel", "--timeout", "5s", "--confirm", "billing")
    done = run(api, *asked)
    assert (done.exit_code, "3 executions of namespace billing" in done.output) == (1, True)
