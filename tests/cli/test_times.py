"""Options that take a point in time or a length of time."""

import click
import pytest

from horae.cli.main import cli
from horae.cli.reference import context_of, walk
from horae.cli.times import TIME, TIME_HELP
from tests.cli.fake_api import FakeApi, page, run
from tests.cli.test_jobs import JOB

TIMED = {
    f"{name} {option.opts[0]}": (name, command, option)
    for name, command in walk(cli)
    for option in command.params
    if isinstance(option, click.Option) and "TIME" in (option.metavar, option.type.name.upper())
}


def test_the_options_are_found():
    assert {"fires list --from", "executions list --since", "jobs create --at", "queues hold --until"} <= set(TIMED)


@pytest.mark.parametrize("which", TIMED)
def test_every_option_that_takes_a_time_takes_a_date_and_its_help_says_so(which):
    name, command, option = TIMED[which]
    context = context_of(name, command)

    assert option.type is TIME
    assert option.type_cast_value(context, "2026-11-10") == "2026-11-10T00:00:00Z"
    assert TIME_HELP in " ".join(command.get_help(context).split())


@pytest.mark.parametrize(
    ("typed", "sent"),
    [
        (" 2026-11-10 ", "2026-11-10T00:00:00Z"),
        ("2026-11-10T08:00:00+01:00", "2026-11-10T08:00:00+01:00"),
        ("yesterday", "yesterday"),
    ],
)
def test_a_date_is_sent_as_its_midnight_in_utc_and_anything_else_as_it_is(typed, sent):
    api = FakeApi({"GET /fires": {**page(), "notes": []}, "POST /jobs": JOB})

    run(api, "fires", "list", "--from", typed, "--to", typed)
    run(api, "jobs", "create", "daily", "--command", "true", "--at", typed)

    assert (api.requests[0].query["from"], api.requests[0].query["to"]) == (sent, sent)
    assert api.requests[1].body["schedule"] == {"at": sent}


@pytest.mark.parametrize(
    "command",
    [
        "jobs trigger daily",
        "executions show e1",
        "executions cancel e1",
        "executions rerun e1",
        "queues drain reports",
        "queues hold reports --for 30m",
        "backfills create daily --from 2026-11-01 --to 2026-11-15",
        "backfills show b1",
        "namespaces erase billing --confirm billing",
    ],
)
def test_a_wrong_timeout_is_refused_before_any_request(command):
    refused = run(api := FakeApi({}), *command.split(), "--timeout", "10x")
    assert refused.exit_code == 2
    assert "Invalid value for '--timeout': '10x' is not a length of time." in refused.stderr
    assert api.requests == []


def test_a_date_that_does_not_exist_is_refused():
    refused = run(None, "triggers", "preview", "0 9 * * *", "--from", "2026-02-30")
    assert refused.exit_code == 2
    assert "is not a time that exists" in refused.stderr
