"""Operations on calendars, on every store."""

import asyncio
from typing import Any

import pytest

from horae.engine.triggers.calendars import Calendars
from horae.env import SECOND
from horae.errors import BadInput, Conflict, NotFound, Stale
from horae.model.base.instant import format_instant
from tests.engine.objects import calendars_of
from tests.store_contract.world import NAMESPACE, World

HOUR = 3600 * SECOND
WORK = {"hours": "MON-FRI 09:00-17:00", "timezone": "Europe/Paris"}


@pytest.fixture
def told() -> list[int]:
    return []


@pytest.fixture
def calendars(world: World, told: list[int]) -> Calendars:
    return calendars_of(world.store, lambda hint: told.append(hint.fire_at))


async def put(calendars: Calendars, name: str = "work", definition: Any = WORK, **more: Any):
    return await calendars.put(NAMESPACE, name, definition, **more)


async def test_a_calendar_is_written_read_and_changed(calendars, world, told):
    view, change = await put(calendars, definition={**WORK, "description": "when people are in"})
    assert (change, view.version, view.description) == ("created", 1, "when people are in")
    assert view.definition == {"hours": ["MON-FRI 09:00-17:00"], "timezone": "Europe/Paris"}
    assert view.text == "MON-FRI 09:00-17:00, Europe/Paris time"
    assert (view.open, view.closes_at, view.valid_to) == (True, "2027-01-15T16:00:00Z", None)  # a Friday, 08:00 UTC

    again, change = await put(calendars, definition={"definition": WORK, "description": "when people are in"})
    assert (change, again) == ("unchanged", view)
    world.clock.advance(HOUR)
    changed, change = await put(calendars, definition={"hours": "SAT 10:00-14:00"})
    assert (change, changed.version, changed.open) == ("changed", 2, False)
    assert changed.opens_at == "2027-01-16T10:00:00Z"
    assert changed.created_at == view.created_at
    assert len(told) == 2

    before = await calendars.get(NAMESPACE, "work", view.valid_from)
    assert (before.version, before.definition, before.valid_to) == (1, view.definition, changed.valid_from)
    assert [each.version for each in await calendars.versions(NAMESPACE, "work")] == [2, 1]


async def test_creating_an_existing_calendar_is_refused(calendars):
    await calendars.create(NAMESPACE, {"name": "work", **WORK})
    with pytest.raises(Conflict, match='"work" exists'):
        await calendars.create(NAMESPACE, {"name": "work", **WORK})
    with pytest.raises(BadInput, match="needs a name"):
        await calendars.create(NAMESPACE, WORK)


async def test_an_edit_of_a_stale_version_is_refused(calendars):
    await put(calendars)
    await put(calendars, definition={"hours": "SAT 10:00-14:00"}, if_match=1)
    with pytest.raises(Stale, match="at version 2, not 1"):
        await put(calendars, if_match=1)
    with pytest.raises(Stale, match="does not exist"):
        await put(calendars, name="other", if_match=1)
    with pytest.raises(Stale):
        await calendars.delete(NAMESPACE, "work", if_match=1)


async def test_only_one_of_two_concurrent_edits_succeeds(calendars):
    await put(calendars)
    edits = [put(calendars, definition={"hours": f"SAT {n}:00-14:00"}, if_match=1) for n in (10, 11)]
    done = await asyncio.gather(*edits, return_exceptions=True)
    assert sorted(type(each).__name__ for each in done) == ["Stale", "tuple"]
    assert (await calendars.get(NAMESPACE, "work")).version == 2


@pytest.mark.parametrize(
    ("definition", "words", "field"),
    [
        ({"country": "Germany", "timezone": "Europe/Berlin"}, 'Did you mean "DE"', "country"),
        ({"hours": "09:00-17:00", "timezone": "Europe/Pariss"}, '"Europe/Paris"', "timezone"),
        ({"dates": ["2026-02-30"]}, "does not exist", "dates[0]"),
        ({"dates": []}, "never open", "dates"),
        ({"all": [{"hours": "MON 09:00-10:00"}, {"hours": "TUE 09:00-10:00"}]}, "never be open", "definition"),
        ({"calendar": "worc"}, 'Did you mean "work"', "definition"),
        ({"calendar": "it"}, "in a circle: it -> it", "definition"),
        ({"hours": "09:00-17:00", "name": "other"}, "not the name in the path", "name"),
        ({"definition": {"hours": "09:00-17:00"}, "hours": "09:00-17:00"}, "is given beside definition", "hours"),
        ([], "a list, not an object", "body"),
    ],
)
async def test_mistakes_are_refused(calendars, definition, words, field):
    await put(calendars)
    with pytest.raises(BadInput) as caught:
        await put(calendars, name="it", definition=definition)
    assert words in str(caught.value)
    assert caught.value.fields["field"] == field
    assert [each.name for each in (await calendars.list(NAMESPACE)).items] == ["work"]


async def test_a_calendar_with_only_past_days_has_a_note(calendars):
    await put(calendars, definition={"dates": ["2020-01-01"]})
    await put(calendars, name="coming", definition={"dates": ["2020-01-01", "2099-01-01"]})

    (note,) = (await calendars.get(NAMESPACE, "work")).notes
    assert "open for the last time" in note
    assert (await calendars.get(NAMESPACE, "coming")).notes == []


async def test_circular_references_between_calendars_are_refused(calendars):
    await put(calendars, "a")
    await put(calendars, "b", {"calendar": "a"})
    await put(calendars, "c", {"calendar": "b"})
    with pytest.raises(BadInput, match="in a circle"):
        await put(calendars, "a", {"calendar": "c"})


async def test_a_reference_chain_is_limited_from_every_link(calendars):
    await put(calendars, "end")
    await put(calendars, "c8")
    for n in range(7, -1, -1):
        await put(calendars, f"c{n}", {"calendar": f"c{n + 1}"})
    with pytest.raises(BadInput, match="more than 8 deep"):
        await put(calendars, "c8", {"calendar": "end"})


async def test_concurrent_mutual_references_are_refused(calendars):
    await put(calendars, "a")
    await put(calendars, "b")
    edits = [put(calendars, "a", {"calendar": "b"}), put(calendars, "b", {"calendar": "a"})]
    done = await asyncio.gather(*edits, return_exceptions=True)
    assert sorted(type(each).__name__ for each in done) == ["BadInput", "tuple"]


async def test_a_calendar_that_another_refers_to_is_not_deleted(calendars):
    await put(calendars)
    await put(calendars, "office", {"any": ["work"]})
    with pytest.raises(Conflict) as caught:
        await calendars.delete(NAMESPACE, "work")
    assert 'calendar "office"' in caught.value.detail
    assert caught.value.fields["usedBy"] == [{"calendar": "office"}]
    assert [use.calendar for use in (await calendars.get(NAMESPACE, "work")).used_by] == ["office"]

    await calendars.delete(NAMESPACE, "office")
    await calendars.delete(NAMESPACE, "work")
    assert (await calendars.list(NAMESPACE)).items == []


async def test_an_unknown_calendar_suggests_the_nearest_name(calendars, world):
    await put(calendars)
    start = world.now()
    with pytest.raises(NotFound, match='Did you mean "work"'):
        await calendars.get(NAMESPACE, "worc")
    with pytest.raises(NotFound, match="There was no calendar") as earlier:
        await calendars.get(NAMESPACE, "work", format_instant(start - HOUR))
    assert "/calendars/work/versions" in earlier.value.remedy
    await calendars.delete(NAMESPACE, "work")
    for gone in (calendars.get(NAMESPACE, "work"), calendars.delete(NAMESPACE, "work")):
        with pytest.raises(NotFound, match="was deleted"):
            await gone
    assert (await calendars.get(NAMESPACE, "work", format_instant(start))).version == 1


async def test_a_list_continues_at_its_cursor(calendars):
    for name in ("c", "a", "b"):
        await put(calendars, name)
    first = await calendars.list(NAMESPACE, limit=2)
    rest = await calendars.list(NAMESPACE, limit=2, cursor=first.next_cursor)
    assert [each.name for each in (*first.items, *rest.items)] == ["a", "b", "c"]
    assert rest.next_cursor is None


async def test_openings_are_shown_page_by_page(calendars):
    await put(calendars)
    window = {"after": "2027-01-15T12:00:00Z", "before": "2027-01-20T00:00:00Z"}
    first = await calendars.openings(NAMESPACE, "work", **window, limit=2)
    rest = await calendars.openings(NAMESPACE, "work", **window, limit=2, cursor=first.next_cursor)
    assert [(each.from_, each.to) for each in (*first.items, *rest.items)] == [
        ("2027-01-15T08:00:00Z", "2027-01-15T16:00:00Z"),
        ("2027-01-18T08:00:00Z", "2027-01-18T16:00:00Z"),
        ("2027-01-19T08:00:00Z", "2027-01-19T16:00:00Z"),
    ]
    assert rest.next_cursor is None
    with pytest.raises(BadInput, match="not after"):
        await calendars.openings(NAMESPACE, "work", after=window["before"], before=window["after"])


async def test_an_endless_opening_has_no_end(calendars):
    await put(calendars, definition={"hours": "00:00-24:00"})
    (opening,) = (await calendars.openings(NAMESPACE, "work")).items
    assert (opening.from_, opening.to) == (None, None)


async def test_without_the_package_a_calendar_can_still_be_read(calendars, monkeypatch):
    from horae.model.triggers.calendars import business

    await put(calendars, definition={"country": "PT", "timezone": "Europe/Lisbon"})
    monkeypatch.setattr(business, "import_module", lambda name: (_ for _ in ()).throw(ImportError(name)))
    business.working_days.cache_clear()
    view = await calendars.get(NAMESPACE, "work")
    assert (view.open, view.text) == (None, "business days of PT, Europe/Lisbon time")
    assert "pip install 'horae[calendar]'" in view.notes[0]
    with pytest.raises(BadInput, match="holidays"):
        await calendars.openings(NAMESPACE, "work")
