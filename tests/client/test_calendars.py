"""The client's calendars against a real server in the same process."""

from datetime import UTC, datetime

import pytest

from horae.errors import BadInput, NotFound, Stale
from tests.client.test_real import embedded


async def test_calendars_are_created_changed_and_deleted():
    async with embedded() as client:
        work = await client.calendars.put("work", {"hours": "MON-FRI 09:00-17:00", "timezone": "Europe/Paris"})
        assert (work.version, work.text) == (1, "MON-FRI 09:00-17:00, Europe/Paris time")
        changed, outcome = await client.calendars.apply({"name": "work", "hours": "SAT 10:00-14:00"})
        assert (changed.version, outcome) == (2, "changed")
        assert (await client.calendars.apply({"name": "work", "hours": "SAT 10:00-14:00"}))[1] == "unchanged"
        assert (await client.calendars.apply({"name": "other", "calendar": "work"}))[1] == "created"
        with pytest.raises(Stale):
            await client.calendars.put("work", {"hours": "SUN 10:00-14:00"}, if_match='"1"')
        with pytest.raises(BadInput):
            await client.calendars.put("work", {"dates": ["2026-02-30"]})

        assert [each.name for each in await client.calendars.list()] == ["other", "work"]
        assert [each.version for each in await client.calendars.versions("work")] == [2, 1]
        assert (await client.calendars.get("work", at=work.valid_from)).version == 1
        openings = await client.calendars.openings("other", since=datetime(2027, 1, 15, tzinfo=UTC), limit=1)
        assert openings[0].raw == {"from": "2027-01-16T10:00:00Z", "to": "2027-01-16T14:00:00Z"}
        assert openings.next_cursor

        await client.calendars.delete("other")
        with pytest.raises(NotFound):
            await client.calendars.get("other")
