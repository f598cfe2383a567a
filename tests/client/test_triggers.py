"""`client.triggers` and `client.fires` against a real server: Python values arrive in the API's form."""

from datetime import UTC, datetime, timedelta

import pytest

from horae.client.app import cron, every, once
from horae.errors import BadInput, NotFound
from tests.client.test_real import embedded, over_http

NEW_YEAR = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture(params=[embedded, over_http])
async def client(request):
    async with request.param() as made:
        yield made


async def test_triggers_one_by_one(client):
    await client.jobs.create("report", command="true", triggers=["@daily"])
    made = await client.triggers.add("report", every("5m", name="often", max_fires=3, jitter=timedelta(seconds=5)))
    assert (made.name, made.kind, made.state, made.text) == ("often", "interval", "active", "every 5m")
    assert made.definition == {"every": "5m", "maxFires": 3, "jitter": "5s"}
    changed = await client.triggers.edit("report", "often", max_fires=None, start_at=NEW_YEAR)
    assert changed.definition == {"every": "5m", "jitter": "5s", "startAt": "2030-01-01T00:00:00Z"}
    assert changed.next_fire_at >= NEW_YEAR
    assert (await client.triggers.pause("report", "often")).state == "paused"
    assert [one.name for one in await client.triggers.list(state="paused")] == ["often"]
    assert (await client.triggers.resume("report", "often")).state == "active"
    await client.triggers.add("report", once(NEW_YEAR, name="then"))
    assert [one.name for one in await client.triggers.of_job("report")] == ["cron", "often", "then"]
    assert (await client.triggers.remove("report", "then")).state == "ended"
    with pytest.raises(NotFound):
        await client.triggers.get("report", "then")


async def test_previews(client):
    shown = await client.triggers.preview(cron("0 9 * * *", tz="Europe/Paris"), since=NEW_YEAR, count=2)
    assert shown.fires == [datetime(2030, 1, 1, 8, tzinfo=UTC), datetime(2030, 1, 2, 8, tzinfo=UTC)]
    assert shown.timezone == "Europe/Paris"
    await client.jobs.create("report", command="true", schedule="@hourly")
    assert len((await client.triggers.preview(job="report")).fires) == 10
    with pytest.raises(BadInput):
        await client.triggers.preview("0 0 30 2 *")


async def test_fires_of_a_window(client):
    await client.jobs.create("report", command="true", schedule="0 * * * *")
    page = await client.fires.list(since=NEW_YEAR, until=NEW_YEAR + timedelta(hours=2), job="report")
    assert [(one.raw["at"], one.raw["disposition"]) for one in page] == [
        ("2030-01-01T00:00:00Z", "planned"), ("2030-01-01T01:00:00Z", "planned"),
    ]  # fmt: skip
