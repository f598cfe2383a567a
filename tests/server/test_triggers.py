"""The routes of triggers and fires: singly, across jobs, in a window, and refusals."""

import pytest

from horae.engine.server_node import ServerNode
from horae.engine.triggers import fires
from tests.server.conftest import Api

NIGHTLY = {"name": "nightly", "cron": "0 2 * * *", "timezone": "Europe/Paris"}


async def create(api: Api, name: str = "report", **more: object) -> dict:
    answer = await api.post("/api/v1/jobs", json={"name": name, "command": "true", **more})
    assert answer.status_code == 201, answer.text
    return answer.json()


async def test_a_trigger_is_added_read_changed_and_removed(api: Api):
    await create(api, schedule="@hourly")
    added = await api.post("/api/v1/jobs/report/triggers", json=NIGHTLY | {"spread": "1h", "maxFires": 3})
    shown = added.json()
    assert added.status_code == 201
    assert added.headers["location"] == f"/api/v1/jobs/{shown['jobId']}/triggers/nightly"
    assert (shown["kind"], shown["state"], shown["version"]) == ("cron", "active", 2)
    assert shown["definition"] == {
        "cron": "0 2 * * *", "timezone": "Europe/Paris", "maxFires": 3, "spread": "1h",
    }  # fmt: skip
    assert shown["text"] == "at 02:00 every day, Europe/Paris time"
    listed = (await api.get("/api/v1/jobs/report/triggers")).json()["items"]
    assert [one["name"] for one in listed] == ["nightly", "schedule"]

    edited = await api.patch("/api/v1/jobs/report/triggers/nightly", json={"every": "5m", "spread": None})
    assert edited.json()["definition"] == {"every": "5m", "maxFires": 3}
    assert (await api.get("/api/v1/jobs/report")).json()["triggers"] == [
        {"name": "nightly", "every": "5m", "maxFires": 3}
    ]
    changed = await api.patch("/api/v1/jobs/report/triggers/schedule", json={"overlap": "allow"})
    assert changed.json()["definition"] == {"cron": "@hourly", "overlap": "allow"}

    removed = await api.delete("/api/v1/jobs/report/triggers/nightly")
    assert (removed.status_code, removed.json()["state"]) == (200, "ended")
    assert (await api.delete("/api/v1/jobs/report/triggers/schedule")).status_code == 200
    assert (await api.get("/api/v1/jobs/report/triggers")).json()["items"] == []
    assert (await api.get("/api/v1/jobs/report")).json()["schedule"] is None


@pytest.mark.parametrize(("own", "name"), [(NIGHTLY, "nightly"), ({"every": "5m"}, "interval-2")])
async def test_an_added_trigger_is_the_answer_also_when_another_is_added_at_once(
    api: Api, node: ServerNode, monkeypatch: pytest.MonkeyPatch, own: dict, name: str
):
    await create(api, triggers=[{"every": "1h"}])
    path, edit, others = "/api/v1/jobs/report/triggers", node.definitions.jobs.edit, [{"name": "other", "every": "7m"}]

    async def edited(*given: object, **more: object):
        done = await edit(*given, **more)
        if others:
            assert (await api.post(path, json=others.pop())).status_code == 201
        return done

    monkeypatch.setattr(node.definitions.jobs, "edit", edited)
    assert (await api.post(path, json=own)).json()["name"] == name


async def test_invalid_triggers_are_refused(api: Api):
    await create(api, triggers=[NIGHTLY])
    path = "/api/v1/jobs/report/triggers"
    taken = await api.post(path, json=NIGHTLY)
    assert (taken.status_code, taken.json()["field"]) == (409, "name")
    missing = await api.get(f"{path}/nighly")
    assert (missing.status_code, '"nightly"' in missing.json()["remedy"]) == (404, True)
    assert (await api.patch(f"{path}/other", json={"every": "5m"})).status_code == 404
    assert (await api.post(f"{path}/nightly/pause", headers={})).status_code == 200
    wrong = await api.patch(f"{path}/nightly", json={"cron": "0 0 30 2 *"})
    assert (wrong.status_code, wrong.json()["field"]) == (400, "triggers[0]")
    past = await api.patch(f"{path}/nightly", json={"endAt": "2020-01-01T00:00:00Z"})
    assert (past.status_code, past.json()["field"]) == (400, "triggers.nightly.endAt")
    stale = await api.patch(f"{path}/nightly", json={"every": "5m"}, headers={"if-match": '"7"'})
    assert stale.status_code == 412


async def test_one_trigger_is_paused_and_resumed(api: Api, node: ServerNode):
    await create(api, triggers=[NIGHTLY, {"name": "often", "every": "1s"}])
    paused = (await api.post("/api/v1/jobs/report/triggers/often/pause")).json()
    assert (paused["state"], paused["nextFireAt"]) == ("paused", None)
    assert (await api.get("/api/v1/triggers", params={"state": "paused"})).json()["items"] == [paused]
    assert (await api.get("/api/v1/jobs/report")).json()["state"] == "active"
    assert (await api.get("/api/v1/jobs/report")).json()["version"] == 1
    resumed = (await api.post("/api/v1/jobs/report/triggers/often/resume")).json()
    assert (resumed["state"], resumed["nextFireAt"] is None) == ("active", False)


async def test_triggers_are_listed_across_jobs_in_pages(api: Api):
    await create(api, "a", triggers=[{"name": "x", "every": "1h"}, NIGHTLY])
    await create(api, "b", schedule="@daily")
    seen, cursor = [], None
    while True:
        page = (await api.get("/api/v1/triggers", params={"limit": 1} | ({"cursor": cursor} if cursor else {}))).json()
        seen += [(one["job"], one["name"]) for one in page["items"]]
        cursor = page["nextCursor"]
        if cursor is None:
            break
    assert sorted(seen) == [("a", "nightly"), ("a", "x"), ("b", "schedule")]

    async def names(**query):
        return [one["name"] for one in (await api.get("/api/v1/triggers", params=query)).json()["items"]]

    assert await names(kind="interval") == ["x"]
    assert await names(job="b") == ["schedule"]
    assert await names(search="NIGHT") == ["nightly"]
    assert (await api.get("/api/v1/triggers", params={"job": "c"})).status_code == 404


async def test_a_preview_stores_nothing(api: Api):
    body = {"cron": "0 9 * * MON-FRI", "timezone": "Europe/Paris", "from": "2026-03-27T00:00:00Z", "count": 2}
    shown = (await api.post("/api/v1/triggers/preview", json=body)).json()
    assert shown["fires"] == ["2026-03-27T08:00:00Z", "2026-03-30T07:00:00Z"]
    assert shown["text"] == "at 09:00 from Monday to Friday, Europe/Paris time"
    assert shown["details"][1]["local"] == "Mon 2026-03-30 09:00:00 +0200"
    assert "clocks go forward by 1h" in shown["details"][1]["note"]
    await create(api, schedule="0 0 * * *")
    mine = {"job": "report", "from": "2030-01-01T00:00:00Z", "count": 1}
    assert (await api.post("/api/v1/triggers/preview", json=mine)).json()["fires"] == ["2030-01-02T00:00:00Z"]


@pytest.mark.parametrize(
    ("body", "status", "detail"),
    [
        ({"cron": "0 9 * * *", "timezone": "Europe/Pari"}, 400, "no time zone"),
        ({"cron": "0 0 30 2 *"}, 400, "never"),
        ({"cron": "* * * *"}, 400, "4 fields"),
        ({}, 400, "needs cron"),
        ({"cron": "@daily", "count": 0}, 400, "count"),
        ({"event": "upload"}, 400, "no instants"),
        ({"job": "nothing"}, 404, "nothing"),
        ({"cron": "@daily", "job": "x"}, 400, "cannot be given"),
    ],
)
async def test_a_wrong_preview_says_why(api: Api, body, status, detail):
    answer = await api.post("/api/v1/triggers/preview", json=body)
    assert (answer.status_code, detail in answer.json()["detail"]) == (status, True), answer.text


async def test_fires_of_a_window_are_decided_and_planned_ones(api: Api, node: ServerNode):
    await create(api, "a", triggers=[{"name": "x", "every": "1h", "anchor": "2026-01-01T00:00:00Z"}])
    await create(api, "b", schedule={"cron": "30 * * * *"})
    await create(api, "c", schedule={"every": "1h", "paused": True})
    window = {"from": "2030-01-01T00:00:00Z", "to": "2030-01-01T02:30:00Z"}
    page = (await api.get("/api/v1/fires", params=window)).json()
    assert [(one["at"][11:16], one["job"], one["disposition"]) for one in page["items"]] == [
        ("00:00", "a", "planned"), ("00:30", "b", "planned"), ("01:00", "a", "planned"), ("01:30", "b", "planned"),
        ("02:00", "a", "planned"),
    ]  # fmt: skip
    assert page["complete"]
    seen, cursor = [], None
    while True:
        query = window | {"limit": 2} | ({"cursor": cursor} if cursor else {})
        part = (await api.get("/api/v1/fires", params=query)).json()
        seen += part["items"]
        cursor = part["nextCursor"]
        if cursor is None:
            break
    assert seen == page["items"]
    only = (await api.get("/api/v1/fires", params=window | {"job": "b", "trigger": "schedule"})).json()
    assert [one["at"][11:16] for one in only["items"]] == ["00:30", "01:30"]
    assert (await api.get("/api/v1/fires", params=window | {"disposition": "fired"})).json()["items"] == []
    await create(api, "rare", schedule={"cron": "0 0 1 * *"})
    for next_, found in (({}, 0), ({"disposition": "planned"}, 3)):
        page = (await api.get("/api/v1/fires", params={"job": "rare", "limit": 3, **next_})).json()
        assert len(page["items"]) == found


async def test_a_shortened_window_is_reported(api: Api, node: ServerNode, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fires, "MOST_TIMERS", 2)
    monkeypatch.setattr(fires, "BATCH", 1)
    for n in range(4):
        await create(api, f"job-{n}", schedule={"cron": f"{n} 0 * * *"})
    window = {"from": "2026-01-01T00:00:00Z", "to": "2099-01-01T00:00:00Z"}
    page = (await api.get("/api/v1/fires", params=window)).json()
    assert not page["complete"]
    assert "More than 2 triggers" in page["notes"][0]
    for wrong in ({"from": "x"}, {"from": window["to"], "to": window["from"]}, {"disposition": "gone"}):
        assert (await api.get("/api/v1/fires", params=wrong)).status_code == 400
