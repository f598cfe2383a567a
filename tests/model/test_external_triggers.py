"""Definitions of external triggers: events, webhooks and watches."""

from uuid import UUID

import pytest

from horae.env import SECOND
from horae.errors import BadInput
from horae.model.definitions.reading.read import parse_definition
from horae.model.definitions.reading.schedule import render_when
from horae.model.triggers.decisions.external import EventTrigger, WatchTrigger, is_within, watch_id, watch_url
from horae.model.triggers.decisions.schedule import render_schedule
from horae.model.triggers.decisions.values import next_fire, previous_fire


def triggers(*given):
    body = {"name": "job", "command": "true", "triggers": list(given)}
    return parse_definition(body, namespace_name="default", created_at=0).whens


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ({"event": "upload"}, EventTrigger(event="upload")),
        (
            {"event": "orders/paid", "filter": "${event.payload.total > 10}", "webhook": True},
            EventTrigger(event="orders/paid", filter="${event.payload.total > 10}", verify="signature"),
        ),
        ({"webhook": True}, EventTrigger(verify="signature")),
        ({"webhook": {"verify": "none"}}, EventTrigger(verify="none")),
        ({"watch": "/srv/inbox/"}, WatchTrigger(url="file:///srv/inbox", settle=2 * SECOND)),
        (
            {"watch": "s3://bucket/in/", "interval": "1s", "existing": "fire", "settle": "5s"},
            WatchTrigger(url="s3://bucket/in/", interval=SECOND, existing="fire", settle=5 * SECOND),
        ),
        ({"watch": "gs://bucket"}, WatchTrigger(url="gs://bucket")),
    ],
)
def test_a_trigger_is_read_and_written_again(given, read):
    (when,) = triggers(given)

    assert when.trigger == read
    assert triggers(render_schedule(read))[0].trigger == read
    assert when.rules.overlap == "allow"
    assert next_fire(read, 0) is None
    assert previous_fire(read, 10**18) is None
    assert read.words


@pytest.mark.parametrize("kind", [{"event": "upload"}, {"webhook": True}, {"watch": "s3://bucket/in/"}])
@pytest.mark.parametrize("overlap", ["skip", "queueOne", "queueAll", {"queueAll": 3}, "cancelOther"])
def test_events_support_every_overlap_policy(kind, overlap):
    (when,) = triggers({**kind, "overlap": overlap})

    assert when.rules.overlap == ("queueAll" if isinstance(overlap, dict) else overlap)
    assert when.rules.most_queued == (3 if isinstance(overlap, dict) else 100)


@pytest.mark.parametrize("kind", [{"event": "upload"}, {"webhook": True}, {"watch": "s3://bucket/in/"}])
@pytest.mark.parametrize("outside", ["skip", "postpone"])
def test_events_support_calendars(kind, outside):
    (when,) = triggers({**kind, "calendar": "work", "outside": outside})

    assert (when.rules.calendars, when.rules.outside) == (("work",), outside)
    assert triggers(render_when(when))[0].rules == when.rules


def test_a_rule_that_does_not_apply_to_events_is_refused_with_the_reason():
    with pytest.raises(BadInput, match="has no meaning for an event: it is decided when it comes, so none is missed"):
        triggers({"event": "upload", "misfire": "all"})


def test_triggers_are_named_by_their_kind_and_have_their_own_params():
    first, second, third = triggers(
        {"event": "a", "params": {"file": "${event.payload.key}"}}, {"event": "b", "name": "b"}, {"webhook": True}
    )

    assert [first.name, second.name, third.name] == ["event", "b", "webhook"]
    assert first.params == {"file": "${event.payload.key}"}


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"event": ""}, "event"),
        ({"event": "a b"}, "event"),
        ({"event": None}, "event"),
        ({"event": "a", "filter": "size > 1"}, "filter"),
        ({"event": "a", "filter": 7}, "filter"),
        ({"event": "a", "webhook": "yes"}, "webhook"),
        ({"event": "a", "webhook": {"verify": "md5"}}, "webhook"),
        ({"webhook": False}, "event"),
        ({"event": "a", "misfire": "skip"}, "misfire"),
        ({"event": "a", "grace": "5m"}, "grace"),
        ({"event": "a", "jitter": "5m"}, "jitter"),
        ({"webhook": True, "spread": "5m"}, "spread"),
        ({"event": "a", "calendar": "work", "outside": "advance"}, "outside"),
        ({"event": "a", "outside": "skip"}, "outside"),
        ({"event": "a", "params": {"x": "${params.y}"}}, "params.x"),
        ({"event": "a", "params": []}, "params"),
        ({"watch": "ftp://x/y"}, "watch"),
        ({"watch": "inbox"}, "watch"),
        ({"watch": "/"}, "watch"),
        ({"watch": "file://host/x"}, "watch"),
        ({"watch": "s3://"}, "watch"),
        ({"watch": "s3://Bad_Bucket!/x"}, "watch"),
        ({"watch": 7}, "watch"),
        ({"watch": "/srv", "interval": "0.5s"}, "interval"),
        ({"watch": "/srv", "interval": "2d"}, "interval"),
        ({"watch": "/srv", "existing": "some"}, "existing"),
        ({"watch": "/srv", "every": "5m"}, ""),
        ({"event": "a", "cron": "* * * * *"}, ""),
    ],
)
def test_an_invalid_trigger_is_refused_with_its_field(given, field):
    with pytest.raises(BadInput) as refused:
        triggers(given)

    assert refused.value.fields["field"] == f"triggers[0].{field}".rstrip(".")
    assert refused.value.remedy


def test_a_folders_path_cannot_lead_out_by_its_spelling():
    url = watch_url("/srv/inbox/../../etc", "watch")

    assert url == "file:///etc"
    assert not is_within(url, ["file:///srv/inbox"])


@pytest.mark.parametrize(
    ("url", "root", "inside"),
    [
        ("file:///srv/inbox", "file:///srv/inbox", True),
        ("file:///srv/inbox/a", "file:///srv/inbox", True),
        ("file:///srv/inboxes", "file:///srv/inbox", False),
        ("s3://bucket/in/a", "s3://bucket", True),
        ("s3://bucket2/in", "s3://bucket", False),
        ("gs://bucket/in", "s3://bucket", False),
        ("s3://bucket/in", "s3://bucket/in/", True),
    ],
)
def test_a_place_is_inside_a_root_by_complete_path_segments(url, root, inside):
    assert is_within(url, [root]) is inside


def test_the_state_of_a_watch_belongs_to_job_trigger_and_place():
    job = UUID(int=1)
    ids = {watch_id(job, "a", "s3://x"), watch_id(job, "b", "s3://x"), watch_id(job, "a", "s3://y")}

    assert len(ids) == 3
    assert watch_id(job, "a", "s3://x") in ids
