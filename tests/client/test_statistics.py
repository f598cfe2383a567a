"""The client's statistics against a real server in the same process."""

from horae.client.views import ApiDocument, ExecutionInfo
from tests.client.test_real import embedded


async def test_statistics_of_a_namespace_and_a_job_are_read():
    async with embedded() as client:
        done = await client.executions.wait((await client.submit("double", {"i": 1})).id, timeout=30)

        seen, fares = await client.overview(), await client.jobs.statistics("double")
        grid, days = (
            await client.jobs.grid("double"),
            await client.jobs.days("double", since="2026-01-01", until="2026-01-02"),
        )
        (_, double) = await client.jobs.list(statistics=True)

        assert (seen.counts["queued"], seen.workers["active"], len(seen.raw["timeline"]["past"])) == (0, 1, 24)
        assert fares.executions in (0, 1)
        assert [item["executionId"] for item in grid.raw["items"]] == [done.id]
        assert [day["day"] for day in days.raw["days"]] == ["2026-01-01", "2026-01-02"]
        assert [one["executionId"] for one in double.raw["statistics"]["recent"]] == [done.id]


def test_an_answer_shows_its_content():
    assert repr(ApiDocument.of({"rows": [1, 2], "total": 0})) == "ApiDocument({'rows': [1, 2], 'total': 0})"
    assert len(repr(ApiDocument.of({"rows": ["x" * 50] * 1000}))) < 3000
    execution = ExecutionInfo.of({"executionId": "e", "status": "running", "attempt": 0, "tags": {}, "upstream": []})
    assert repr(execution) == "ExecutionInfo(execution_id='e', status='running', attempt=0)"
