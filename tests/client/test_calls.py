"""Retries of requests: which are repeated, how often, and which never."""

import re
from contextlib import suppress

import pytest

from horae.client.client import Client
from horae.client.problems import Unreachable, unreachable
from horae.client.transport.calls import RequestRetryPolicy
from horae.client.transport.transport import ApiRequest, ApiResponse, Unanswered
from horae.env import virtual_env
from horae.errors import (
    BadInput,
    Busy,
    Conflict,
    Forbidden,
    Gone,
    HoraeError,
    KeyReused,
    NotFound,
    SessionEnded,
    Stale,
    StoreUnavailable,
    Unauthorized,
)
from tests.client.fakes import QuickClock, client_of, ok, problem

JOB = {"jobId": "1", "name": "a"}


class Dead:
    """A transport to servers that refuse connections, one after the other."""

    def __init__(self, *places: str) -> None:
        self._places = list(places)
        self.asked: list[str] = []

    @property
    def place(self) -> str:
        return self._places[0]

    async def send(self, call: ApiRequest) -> ApiResponse:
        self.asked.append(self.place)
        self._places.append(self._places.pop(0))
        raise REFUSED


class Silent(Dead):
    """A transport to servers that accept a call and never answer."""

    def __init__(self, clock: QuickClock, *places: str) -> None:
        super().__init__(*places)
        self._clock = clock

    async def send(self, call: ApiRequest) -> ApiResponse:
        await self._clock.sleep(call.timeout)
        with suppress(Unanswered):
            await super().send(call)
        raise LOST


REFUSED = Unanswered("connection refused", sent=False)
LOST = Unanswered("connection reset", sent=True)


async def test_a_lost_post_is_repeated_with_the_same_key_and_body():
    client, server, _ = client_of(LOST, REFUSED, problem(503, "busy", retry_after=1), ok(JOB, 201))

    await client.jobs.create("a", command="echo")

    assert len(server.calls) == 4
    assert len({(call.headers["idempotency-key"], call.body) for call in server.calls}) == 1


async def test_a_lost_deletion_is_repeated_with_the_same_key():
    client, server, _ = client_of(LOST, ok(JOB))
    await client.jobs.delete("a")
    assert len({call.headers["idempotency-key"] for call in server.calls}) == 1


async def test_each_post_has_a_key_of_its_own_and_reads_have_none():
    client, server, _ = client_of(ok(JOB))

    await client.jobs.pause("a")
    await client.jobs.pause("a")
    await client.jobs.get("a")

    first, second, read = (call.headers.get("idempotency-key") for call in server.calls)
    assert first != second
    assert read is None


async def test_pauses_grow_are_jittered_and_end_with_patience():
    client, server, clock = client_of(REFUSED, patience=RequestRetryPolicy(total=30.0, pause=0.1, longest=5.0))

    with pytest.raises(Unreachable):
        await client.jobs.get("a")

    assert sum(clock.slept) <= 30.0
    assert all(later > earlier for earlier, later in zip(clock.slept[:5], clock.slept[1:6], strict=True))
    assert max(clock.slept) <= 5.0
    assert len(set(clock.slept)) == len(clock.slept)
    assert len(server.calls) == len(clock.slept) + 1


async def test_the_pause_that_the_server_requests_is_kept():
    client, _, clock = client_of(problem(503, "store-unavailable", retry_after=4), ok(JOB))
    await client.jobs.get("a")
    assert clock.slept == [4.0]


async def test_a_server_that_stays_busy_is_reported_with_its_message():
    client, server, _ = client_of(problem(503, "store-unavailable", "The store cannot be reached.", retry_after=20))
    with pytest.raises(StoreUnavailable, match="cannot be reached") as caught:
        await client.jobs.get("a")
    assert caught.value.retry_after == 20
    assert len(server.calls) == 2


async def test_a_first_attempt_in_progress_is_waited_for():
    client, server, _ = client_of(LOST, problem(409, "conflict", "under way", retry_after=1, retryAfter=1), ok(JOB))
    await client.jobs.pause("a")
    assert len(server.calls) == 3


async def test_a_conflict_is_not_repeated():
    client, server, clock = client_of(problem(409, "conflict", "Taken.", jobId="7"))
    with pytest.raises(Conflict) as caught:
        await client.jobs.create("a")
    assert caught.value.fields == {"jobId": "7"}
    assert len(server.calls) == 1
    assert clock.slept == []


async def test_a_guarded_edit_of_unknown_outcome_is_not_repeated():
    client, server, _ = client_of(LOST, ok(JOB))
    with pytest.raises(Unreachable, match="did not answer"):
        await client.jobs.edit("a", if_match='"3"', retries=1)
    assert len(server.calls) == 1

    client, server, _ = client_of(REFUSED, ok(JOB))
    await client.jobs.edit("a", if_match='"3"', retries=1)
    assert len(server.calls) == 2


async def test_a_missing_server_is_reported_at_once():
    client, _, clock = client_of(REFUSED, patience=RequestRetryPolicy(refusals=1))
    with pytest.raises(Unreachable, match="horae up"):
        await client.jobs.get("a")
    assert clock.slept == []


async def test_missing_servers_are_reported_after_one_attempt_each():
    client, server, _ = client_of(REFUSED, ok(JOB), patience=RequestRetryPolicy(refusals=2))
    assert (await client.jobs.get("a")).name == "a"
    assert len(server.calls) == 2

    client, server, _ = client_of(REFUSED, REFUSED, ok(JOB), patience=RequestRetryPolicy(refusals=2))
    with pytest.raises(Unreachable):
        await client.jobs.get("a")
    assert len(server.calls) == 2


@pytest.mark.parametrize(
    ("place", "lost", "method", "remedy"),
    [
        (
            "https://a",
            Unanswered("CERTIFICATE_VERIFY_FAILED", sent=False),
            "GET",
            "HORAE_CA",
        ),
        ("https://a", Unanswered("[SSL: WRONG_VERSION_NUMBER] wrong version number", sent=False), "POST", "http://"),
        ("http://a", REFUSED, "GET", "`horae up`"),
        (
            "http://a",
            Unanswered("Server disconnected", sent=True),
            "GET",
            "You can repeat the request: it changes nothing. .*https://a",
        ),
        ("https://a", Unanswered("Server disconnected", sent=True), "POST", "check this before you repeat it.$"),
    ],
)
def test_the_remedy_depends_on_the_failure(place, lost, method, remedy):
    assert re.search(remedy, unreachable(place, lost, method).remedy)


@pytest.mark.parametrize(
    ("status", "slug", "kind"),
    [
        (400, "bad-input", BadInput),
        (401, "unauthorized", Unauthorized),
        (403, "forbidden", Forbidden),
        (404, "not-found", NotFound),
        (409, "session-ended", SessionEnded),
        (410, "gone", Gone),
        (412, "stale", Stale),
        (422, "key-reused", KeyReused),
        (404, "of-a-newer-server", NotFound),
        (418, "of-a-newer-server", HoraeError),
    ],
)
async def test_a_problem_becomes_the_error_it_was(status, slug, kind):
    client, _, _ = client_of(problem(status, slug, "What.", field="x"))
    with pytest.raises(HoraeError) as caught:
        await client.jobs.get("a")
    assert type(caught.value) is kind
    assert (caught.value.detail, caught.value.remedy) == ("What.", "Do this.")
    assert caught.value.fields["field"] == "x"


async def test_an_error_without_a_problem_document_is_reported():
    client, _, _ = client_of(problem(503, "busy"), patience=RequestRetryPolicy(total=0))
    with pytest.raises(Busy):
        await client.jobs.get("a")


async def test_calls_carry_the_key_and_quote_parts_of_the_path():
    client, server, _ = client_of(ok(JOB))
    await client.jobs.get("a/b?c")
    assert server.calls[0].path == "/api/v1/jobs/a%2Fb%3Fc"
    assert server.calls[0].headers["authorization"] == "Bearer hk_test"


@pytest.mark.parametrize("name", ["", ".", ".."])
async def test_a_name_that_would_change_the_path_is_refused(name):
    client, server, _ = client_of(ok(JOB))
    with pytest.raises(BadInput, match="is not a name or an id"):
        await client.triggers.remove("j", name)
    assert server.calls == []


async def test_a_redirect_is_an_error_that_names_its_target():
    client, _, _ = client_of(ApiResponse(status=302, headers={"location": "https://sso.example.com/login"}))
    for call in (client.jobs.pause("a"), anext(client.backup())):
        with pytest.raises(HoraeError, match=r"http://scripted .* redirects to https://sso\.example\.com/login"):
            await call


@pytest.mark.parametrize("body", [b"<html>Welcome</html>", b"[]", b'{"message": "Hi."}', b""])
async def test_the_answer_of_another_web_server_is_reported(body):
    client, _, _ = client_of(ApiResponse(status=200, body=body))
    for call in (client.jobs.get("a"), client.jobs.list()):
        with pytest.raises(HoraeError, match="does not answer like a Horae server"):
            await call


async def test_the_key_is_sent_without_the_end_of_its_line():
    _, server, _ = client_of(ok(JOB))
    await Client(key="hk_test\n", transport=server).jobs.get("a")
    assert server.calls[0].headers["authorization"] == "Bearer hk_test"


@pytest.mark.parametrize(
    ("given", "named"), [({"key": "hk_t\u00e9"}, "key"), ({"namespace": "caf\u00e9"}, "namespace")]
)
async def test_characters_that_http_cannot_carry_are_refused_without_the_value(given, named):
    _, server, _ = client_of(ok(JOB))
    with pytest.raises(BadInput, match=f"The {named} has characters that HTTP cannot carry") as refused:
        await Client(transport=server, **given).jobs.get("a")
    assert given[named] not in str(refused.value)
    assert server.calls == []


async def test_long_requests_have_a_long_timeout():
    client, server, _ = client_of(ok({}))
    assert [piece async for piece in client.backup()] == [b"{}"]
    await client.audit.executions()
    await client.audit.executions(repair=True)
    assert [(call.method, call.timeout) for call in server.calls] == [("GET", 600), ("GET", 600), ("POST", 600)]


async def test_a_busy_server_delays_no_request_to_the_next_one():
    servers = Dead("http://a", "http://b")
    answers = [problem(503, "busy", retry_after=60), ok(JOB)]

    async def send(call: ApiRequest) -> ApiResponse:
        with suppress(Unanswered):
            await Dead.send(servers, call)
        return answers.pop(0)

    servers.send = send  # type: ignore[method-assign]
    clock = QuickClock()
    client = Client(key="k", transport=servers, env=virtual_env(1, clock))  # type: ignore[arg-type]
    assert (await client.jobs.get("a")).name == "a"
    assert servers.asked == ["http://a", "http://b"]
    assert sum(clock.slept) < 1


async def test_filters_are_in_camel_case_without_absent_ones():
    client, server, _ = client_of(ok({"items": [], "nextCursor": "n"}))
    page = await client.dlq.list(error_type="Timeout Error", job=None, limit=5)
    assert server.calls[0].path == "/api/v1/dlq?errorType=Timeout+Error&limit=5"
    assert page.next_cursor == "n"


async def test_every_tried_server_is_named():
    dead, env = Dead("http://a", "http://b"), virtual_env(1, QuickClock())
    client = Client(key="k", transport=dead, patience=RequestRetryPolicy(refusals=2), env=env)  # type: ignore[arg-type]
    with pytest.raises(Unreachable, match="No Horae server answers at http://a, http://b "):
        await client.jobs.list()


async def test_patience_ends_after_each_silent_server_was_tried():
    clock = QuickClock()
    silent = Silent(clock, "http://a", "http://b", "http://c")
    client = Client(key="k", transport=silent, patience=RequestRetryPolicy(total=30.0), env=virtual_env(1, clock))  # type: ignore[arg-type]
    with pytest.raises(Unreachable):
        await client.jobs.list()
    assert silent.asked == ["http://a", "http://b", "http://c"]


async def test_a_first_attempt_on_another_server_is_waited_for_as_long_as_an_answer():
    under_way = [problem(409, "conflict", "under way", retry_after=8, retryAfter=8)] * 5
    client, server, clock = client_of(LOST, *under_way, ok(JOB), patience=RequestRetryPolicy(total=30.0))
    await client.jobs.pause("a")
    assert len(server.calls) == 7
    assert 30 < sum(clock.slept) < 60
