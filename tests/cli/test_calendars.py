"""`horae calendars`."""

import json

import pytest

from horae.errors import Conflict
from tests.cli.fake_api import Applying, FakeApi, page, run

WORK = {
    "name": "work", "version": 2, "text": "MON-FRI 09:00-17:00, UTC time", "open": True, "description": "",
    "closesAt": "2027-01-15T17:00:00Z", "definition": {"hours": ["MON-FRI 09:00-17:00"]}, "usedBy": [{"calendar": "x"}],
}  # fmt: skip


def test_list_and_show():
    api = FakeApi({"GET /calendars": page(WORK), "GET /calendars/work": WORK})
    row = run(api, "calendars", "list").stdout.splitlines()[1]
    assert row.split()[:4] == ["work", "2", "yes", "2027-01-15T17:00:00Z"]
    assert "MON-FRI 09:00-17:00" in run(api, "calendars", "show", "work", "--at", "2027-01-01T00:00:00Z").stdout
    assert api.requests[-1].query == {"at": "2027-01-01T00:00:00Z"}
    assert json.loads(run(api, "calendars", "list", "-o", "json").stdout)["items"] == [WORK]
    assert "horae calendars set" in run(FakeApi({"GET /calendars": page()}), "calendars", "list").stdout


@pytest.mark.parametrize(
    ("options", "body"),
    [
        (["--hours", "MON-FRI 09:00-17:00", "--tz", "Europe/Paris"],
         {"hours": ["MON-FRI 09:00-17:00"], "timezone": "Europe/Paris"}),
        (["--country", "DE", "--subdivision", "BY", "--tz", "Europe/Berlin", "--description", "Bavaria"],
         {"country": "DE", "subdivision": "BY", "timezone": "Europe/Berlin", "description": "Bavaria"}),
        (["--exchange", "XNYS", "--tz", "America/New_York"], {"exchange": "XNYS", "timezone": "America/New_York"}),
        (["--date", "12-25", "--date", "2026-12-24"], {"dates": ["12-25", "2026-12-24"]}),
        (["--calendar", "a", "--hours", "09:00-17:00", "--except", "closed", "--except-date", "05-01"],
         {"all": [{"calendar": "a"}, {"hours": ["09:00-17:00"]}], "except": [{"dates": ["05-01"]}, "closed"]}),
    ],
)  # fmt: skip
def test_set_by_options(options, body):
    api = FakeApi({"PUT /calendars/work": WORK})
    result = run(api, "calendars", "set", "work", *options)
    assert result.stdout == "Calendar work is at version 2: MON-FRI 09:00-17:00, UTC time.\n"
    assert api.requests[0].body == body


def test_set_from_a_file_with_an_expected_version(tmp_path):
    path = tmp_path / "work.yaml"
    path.write_text("dates: [2026-12-24, 12-25]\ntimezone: Europe/Paris\n")
    api = FakeApi({"PUT /calendars/work": WORK})
    run(api, "calendars", "set", "work", "-f", str(path), "--if-version", "1")
    assert api.requests[0].body == {"dates": ["2026-12-24", "12-25"], "timezone": "Europe/Paris"}
    assert api.requests[0].headers["if-match"] == '"1"'


def test_exceptions_are_added_to_those_of_the_file(tmp_path):
    path = tmp_path / "work.yaml"
    path.write_text("{hours: 09:00-17:00, except: [closed]}\n")
    api = FakeApi({"PUT /calendars/work": WORK})
    run(api, "calendars", "set", "work", "-f", str(path), "--except-date", "05-01", "--except", "strike")
    assert api.requests[0].body == {"hours": "09:00-17:00", "except": ["closed", {"dates": ["05-01"]}, "strike"]}


def test_set_requires_opening_times(tmp_path):
    assert run(FakeApi({}), "calendars", "set", "work").exit_code == 2
    path = tmp_path / "work.yaml"
    path.write_text("hours: 09:00-17:00\n")
    both = run(FakeApi({}), "calendars", "set", "work", "-f", str(path), "--country", "FR")
    assert (both.exit_code, "cannot both give the times" in both.stderr) == (2, True)
    path.write_text("[]\n")
    assert "does not define one calendar" in run(FakeApi({}), "calendars", "set", "work", "-f", str(path)).stderr


def test_delete():
    assert (
        run(FakeApi({"DELETE /calendars/work": None}), "calendars", "delete", "work").stdout
        == "Deleted calendar work.\n"
    )
    used = FakeApi({"DELETE /calendars/work": Conflict('Calendar "work" is used by calendar "office".')})
    result = run(used, "calendars", "delete", "work")
    assert (result.exit_code, "office" in result.stderr) == (4, True)


def test_preview():
    openings = page({"from": "2027-01-15T08:00:00Z", "to": "2027-01-15T16:00:00Z"}, next_cursor="abc")
    api = FakeApi({"GET /calendars/work/openings": openings})
    result = run(api, "calendars", "preview", "work", "--from", "2027-01-15T00:00:00Z", "--limit", "1")
    assert result.stdout.splitlines()[1].split() == ["2027-01-15T08:00:00Z", "2027-01-15T16:00:00Z"]
    assert "--cursor abc" in result.stderr
    assert api.requests[0].query == {"from": "2027-01-15T00:00:00Z", "limit": "1"}


BOTH = """
calendars:
  - {name: office, all: [work, {hours: "09:00-17:00"}]}
  - {name: work, country: FR, timezone: Europe/Paris}
jobs:
  - {name: report, command: python report.py, schedule: {cron: "0 8 * * *", calendar: office}}
"""


def test_apply_lists_calendars_first(tmp_path):
    path, api = tmp_path / "all.yaml", Applying()
    path.write_text(BOTH)
    assert run(api, "apply", "-f", str(path)).stdout == (
        "created    calendar office\ncreated    calendar work\ncreated    report\n"
    )
    path.write_text(BOTH.replace("FR", "DE"))
    outcome = json.loads(run(api, "apply", "-f", str(path), "-o", "json").stdout)
    assert [(each["name"], each["outcome"]) for each in outcome["items"]] == [
        ("office", "unchanged"), ("work", "changed"), ("report", "unchanged"),
    ]  # fmt: skip


def test_apply_accepts_a_file_with_calendars_only(tmp_path):
    path = tmp_path / "calendars.yaml"
    path.write_text("calendars: [{name: a, hours: '09:00-17:00'}]")
    assert run(Applying(), "apply", "-f", str(path)).stdout == "created    calendar a\n"
    path.write_text("calendars: [{hours: '09:00-17:00'}]")
    assert "a calendar without a name" in run(Applying(), "apply", "-f", str(path)).stderr
    path.write_text("jobs: []")
    assert "no job, no template and no calendar" in run(Applying(), "apply", "-f", str(path)).stderr
