"""Termination notices: their formats, their sources, and the worker's reaction."""

import pytest

from horae.env import SECOND, VirtualClock, system_env
from horae.errors import BadInput
from horae.model.base.instant import parse_instant
from horae.worker.notices import notice_watch
from horae.worker.notices.notice import TerminationNotice, read_notice, time_left
from horae.worker.notices.notice_watch import watch_for_notice
from tests.waiting import eventually
from tests.worker.local import shop
from tests.worker.test_command import pids_in, shell
from tests.worker.web import web

AT = parse_instant("2026-11-15T08:22:00Z")
AZURE = (
    '{"DocumentIncarnation": 2, "Events": [{"EventId": "1", "EventStatus": "Scheduled", "EventType": "%s",'
    ' "ResourceType": "VirtualMachine", "Resources": ["vm-3"], "NotBefore": "%s"}]}'
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"action": "terminate", "time": "2026-11-15T08:22:00Z"}', TerminationNotice(AT)),
        ('{"action": "hibernate"}', TerminationNotice()),
        ('{"noticeTime": "2026-11-15T08:20:00Z"}', TerminationNotice()),
        ("2026-11-15T08:22:00Z\n", TerminationNotice(AT)),
        ("TRUE", TerminationNotice()),
        ("FALSE", None),
        ("NONE", None),
        ("TERMINATE_ON_HOST_MAINTENANCE", TerminationNotice()),
        ("MIGRATE_ON_HOST_MAINTENANCE", None),
        ("", None),
        ('{"DocumentIncarnation": 1, "Events": []}', None),
        (AZURE % ("Preempt", "Sun, 15 Nov 2026 08:22:00 GMT"), TerminationNotice(AT)),
        (AZURE % ("Preempt", ""), TerminationNotice()),
        (AZURE % ("Freeze", "Sun, 15 Nov 2026 08:22:00 GMT"), None),
    ],
)
def test_notices_of_clouds_are_understood(text, expected):
    assert read_notice(text, "vm-3") == expected


def test_an_event_of_another_machine_is_no_notice():
    assert read_notice(AZURE % ("Preempt", ""), "vm-4") is None


@pytest.mark.parametrize("text", ["<html>", "{broken", '{"status": "fine"}', '{"time": "soon"}'])
def test_other_texts_are_refused(text):
    with pytest.raises(BadInput, match="notice"):
        read_notice(text)


def test_part_of_the_notice_is_reserved_for_the_last_reports():
    assert time_left(TerminationNotice(AT), AT - 30 * SECOND) == 29 * SECOND
    assert time_left(TerminationNotice(AT), AT) == 0
    assert time_left(TerminationNotice(), AT) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", TerminationNotice()), ("spare me", TerminationNotice()), ("2026-11-15T08:22:00Z", TerminationNotice(AT))],
)
async def test_an_existing_file_is_a_notice(tmp_path, text, expected):
    (tmp_path / "notice").write_text(text)

    assert await watch_for_notice(VirtualClock(), file=str(tmp_path / "notice")) == expected


def ec2(asked):
    """Return EC2 metadata of the second version, which requires a token and has no notice at first."""
    if asked.path == notice_watch.AWS_TOKEN:
        return 200, {}, b"a-token"
    if asked.headers.get("x-aws-ec2-metadata-token") != "a-token":
        return 401, {}, b""
    looks.append(asked)
    return (404, {}, b"") if len(looks) < 3 else (200, {}, b'{"action": "stop", "time": "2026-11-15T08:22:00Z"}')


looks: list[object] = []


async def test_a_url_is_polled_until_it_announces_the_end_of_the_machine(monkeypatch):
    monkeypatch.setattr(notice_watch, "CHECK_EVERY", 0.0)
    async with web(ec2) as site:
        notice = await watch_for_notice(system_env().clock, url=f"{site.url}/latest/meta-data/spot/instance-action")

        assert notice == TerminationNotice(AT)
        assert [asked.method for asked in site.asked] == ["GET", "PUT", "GET", "GET", "GET"]


async def test_the_name_of_this_machine_is_read_from_azure():
    def azure(asked):
        if asked.path.startswith(notice_watch.AZURE_NAME):
            return 200, {}, b"vm-3"
        return 200, {}, (AZURE % ("Preempt", "")).encode()

    async with web(azure) as site:
        assert (
            await watch_for_notice(system_env().clock, url=f"{site.url}/metadata/scheduledevents")
            == TerminationNotice()
        )
        assert {asked.headers["metadata"] for asked in site.asked} == {"true"}


async def test_under_a_notice_preemptible_work_goes_back_at_once_and_the_rest_ends_in_time(tmp_path):
    async with shop(heartbeat=0.5, concurrency=2) as it:
        wait = f"touch {tmp_path}/$HORAE_EXECUTION_ID; while [ ! -e {tmp_path}/go ]; do sleep 0.02; done"
        moves = it.submit(shell(wait), name="moves", preemptible=True)
        stays = it.submit(shell(wait), name="stays")
        await eventually(lambda: len(list(tmp_path.iterdir())) == 2)

        it.worker.leave_by(TerminationNotice(it.worker.env.clock.wall() + 60 * SECOND))

        released = await eventually(lambda: [o for o in it.gateway.outcomes if o.parcel == moves])
        assert [o.outcome for o in released] == ["released"]
        assert not [o for o in it.gateway.outcomes if o.parcel == stays]
        (tmp_path / "go").touch()
        assert await it.end == "drained"
        assert [o.outcome for o in it.gateway.outcomes if o.parcel == stays] == ["success"]


async def test_items_that_do_not_end_within_the_notice_are_handed_back_in_time(tmp_path):
    async with shop(heartbeat=0.5, grace=600 * SECOND) as it:
        it.submit(shell(f"echo $$ > {tmp_path}/a.pid; exec sleep 600"), grace=0)
        await pids_in(tmp_path, 1)

        it.worker.leave_by(TerminationNotice(it.worker.env.clock.wall() + SECOND))

        assert await it.end == "drained"
        assert [o.outcome for o in it.gateway.outcomes] == ["released"]
