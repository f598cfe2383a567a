"""The calendar routes: written with ETags, read in present and earlier versions, and refused with a remedy."""

from msgspec import structs

from horae.env import SECOND
from horae.model.triggers.calendars.read import KINDS
from horae.server.routes.triggers.calendars import CalendarBody
from tests.server.conftest import Api

URL = "/api/v1/calendars"
DESK = {"hours": "MON-FRI 09:00-17:00", "timezone": "Europe/Paris"}


async def put(api: Api, name: str = "desk", body: dict = DESK, **headers: str):
    return await api.put(f"{URL}/{name}", json=body, headers=headers)


async def test_a_calendar_is_put_read_and_deleted(api: Api):
    made = await put(api)
    assert (made.status_code, made.headers["etag"].partition(".")[0], made.headers["location"]) == (
        201,
        'W/"1',
        f"{URL}/desk",
    )
    same = await put(api)
    assert (same.status_code, same.headers["etag"].partition(".")[0]) == (200, 'W/"1')
    read = await api.get(f"{URL}/desk")
    assert read.json() == same.json()
    assert read.json()["definition"] == {"hours": ["MON-FRI 09:00-17:00"], "timezone": "Europe/Paris"}
    assert [each["name"] for each in (await api.get(URL)).json()["items"]] == ["desk"]
    assert (await api.delete(f"{URL}/desk")).status_code == 204
    gone = await api.get(f"{URL}/desk")
    assert (gone.status_code, gone.json()["detail"]) == (404, 'Calendar "desk" was deleted.')


async def test_a_calendar_is_created_once(api: Api):
    made = await api.post(URL, json={"name": "desk", **DESK})
    assert (made.status_code, made.headers["location"]) == (201, f"{URL}/desk")
    assert (await api.post(URL, json={"name": "desk", **DESK})).status_code == 409


async def test_edits_match_what_was_read(api: Api):
    await put(api)
    changed = await put(api, body={"hours": "SAT 10:00-14:00"}, **{"If-Match": '"1"'})
    assert changed.headers["etag"].startswith('W/"2.')
    stale = await put(api, **{"If-Match": '"1"'})
    assert (stale.status_code, stale.json()["version"]) == (412, 2)
    assert (await api.delete(f"{URL}/desk", headers={"If-Match": '"1"'})).status_code == 412


async def test_an_old_version_is_read_by_its_time(api: Api, clock):
    made = (await put(api)).json()
    clock.advance(3600 * SECOND)
    await put(api, body={"hours": "SAT 10:00-14:00"})
    old = await api.get(f"{URL}/desk", params={"at": made["validFrom"]})
    assert (old.json()["version"], old.headers["etag"].partition(".")[0]) == (1, 'W/"1')
    versions = (await api.get(f"{URL}/desk/versions")).json()["items"]
    assert [(each["version"], each["validTo"] is None) for each in versions] == [(2, True), (1, False)]


async def test_openings(api: Api):
    await put(api)
    answer = await api.get(
        f"{URL}/desk/openings", params={"from": "2027-01-15T12:00:00Z", "to": "2027-01-19T00:00:00Z", "limit": 5}
    )
    assert answer.json() == {
        "items": [
            {"from": "2027-01-15T08:00:00Z", "to": "2027-01-15T16:00:00Z"},
            {"from": "2027-01-18T08:00:00Z", "to": "2027-01-18T16:00:00Z"},
        ],
        "nextCursor": None,
    }


async def test_errors_name_the_wrong_field(api: Api):
    wrong = await put(api, body={"country": "Frence", "timezone": "Europe/Paris"})
    assert (wrong.status_code, wrong.json()["field"]) == (400, "country")
    assert "Did you mean" in wrong.json()["remedy"]
    assert (await put(api, name="no spaces")).status_code == 400


async def test_a_used_calendar_is_not_deleted(api: Api):
    await put(api)
    await put(api, "office", {"calendar": "desk"})
    refused = await api.delete(f"{URL}/desk")
    assert refused.status_code == 409
    assert refused.json()["usedBy"] == [{"calendar": "office"}]
    assert (await api.get(f"{URL}/desk")).json()["usedBy"] == [{"calendar": "office"}]


def test_the_document_names_every_field_of_a_definition():
    named = {field.encode_name for field in structs.fields(CalendarBody)}
    assert {name for kind in KINDS.values() for name in kind.names} | {"except", "timezone"} <= named
