"""The SDK in scripts, threads, notebooks, servers that fork, and several event loops: real processes, a real server."""

import subprocess
import sys
import textwrap
from collections.abc import Iterator

import httpx2
import pytest

from horae.client.loops import FORK_LOCK
from horae.client.transport.http import HttpClientTransport
from tests.cli.test_up import Up, running

SHOP = """
from horae import App

app = App()


@app.job
def send_email(to: str, subject: str = "hello") -> str:
    return f"{subject} to {to}"
"""
pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def up(tmp_path_factory) -> Iterator[Up]:
    folder = tmp_path_factory.mktemp("anywhere")
    (folder / "shop.py").write_text(SHOP)
    with running(folder, "--app", "shop:app") as started:
        yield started


def script(up: Up, body: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; if it hangs, kill it and fail the test."""
    path = up.folder / "script.py"
    path.write_text("import asyncio, os, sys, threading\nfrom shop import app, send_email\n\n" + textwrap.dedent(body))
    line = [sys.executable, "-W", "always", *options, str(path)]
    env = {"HORAE_URL": up.url, "HORAE_DATA": str(up.folder)}
    return subprocess.run(line, cwd=up.folder, env=env, capture_output=True, text=True, timeout=100, check=False)


def said(up: Up, body: str) -> list[str]:
    """Return the lines that a program prints; check that it prints no warning and exits with 0."""
    done = script(up, body)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_many_loops_submit(up):
    body = """
        ids = {asyncio.run(send_email.submit(to=str(n))).id for n in range(200)}
        print(len(ids), len(app.client._caller._transport._http._held))
    """
    assert said(up, body) == ["200 0"]


def test_loops_closed_by_hand_leave_no_connections(up):
    body = """
        import gc, warnings

        for n in range(50):
            loop = asyncio.new_event_loop()
            loop.run_until_complete(send_email.submit(to=str(n)))
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()
        warnings.simplefilter("ignore", ResourceWarning)  # Python's own, of a loop that is closed with connections
        for n in range(50):
            loop = asyncio.new_event_loop()
            loop.run_until_complete(send_email.submit(to=str(n)))
            loop.close()
        gc.collect()
        print(len(app.client._caller._transport._http._held), len(os.listdir("/proc/self/fd")) < 20)
    """
    assert said(up, body) == ["1 True"]


def test_sync_and_async_calls_mix(up):
    body = """
        one = app.client.sync.submit("send_email", {"to": "a"})
        two = asyncio.run(send_email.submit(to="b"))
        three = send_email.sync.submit(to="c", key="k")
        four = asyncio.run(send_email.submit("c", key="k"))
        many = send_email.sync.submit_many({"to": str(n)} for n in range(3))
        print(three.id == four.id, four.deduplicated)
        ends = app.client.sync.executions.wait_all([e.id for e in (one, two, three, *many)], timeout=60)
        print([e.result for e in ends])
    """
    results = [f"hello to {to}" for to in "abc012"]
    assert said(up, body) == ["True True", str(results)]


def test_several_loops_run_at_once_in_threads(up):
    body = """
        ids, errors = set(), []

        async def many():
            return await asyncio.gather(*(send_email.submit(to=str(n)) for n in range(10)))

        def asynchronous():
            for execution in asyncio.run(many()):
                ids.add(execution.id)

        def blocking():
            for n in range(10):
                ids.add(send_email.sync.submit(to=str(n)).id)

        threading.excepthook = lambda about: errors.append(about.exc_value)
        threads = [threading.Thread(target=work) for work in (asynchronous, blocking) * 4]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        print(len(ids), errors)
    """
    assert said(up, body) == ["80 []"]


def test_a_blocking_call_works_beside_a_running_loop(up):
    body = """
        async def cell():
            first = await send_email.submit(to="a")
            second = send_email.sync.submit(to="b")
            ended = app.client.sync.executions.wait(second.id, timeout=60)
            return [ended.result, (await app.client.executions.wait(first.id, timeout=60)).result]

        print(asyncio.run(cell()))
    """
    assert said(up, body) == ["['hello to b', 'hello to a']"]


FORKED = """
import signal

def used_before():
    send_email.sync.submit(to="parent")
    asyncio.run(send_email.submit(to="parent"))

def child(n):
    ids = [send_email.sync.submit(to=str(n)).id, asyncio.run(send_email.submit(to=str(n))).id]
    return ids + [one.id for one in send_email.sync.submit_many([{"to": str(n)}] * 2)]
"""


@pytest.mark.parametrize("before", ["used_before()", ""])
def test_forked_children_and_their_parent_submit(up, before):
    body = f"""
        {before}
        read, write = os.pipe()
        children = []
        for n in range(4):
            if (pid := os.fork()) == 0:
                os.write(write, (" ".join(child(n)) + "\\n").encode())
                os._exit(0)
            children.append(pid)
        mine = child("parent")
        print([os.waitpid(pid, 0)[1] for pid in children])
        os.close(write)
        with open(read) as told:
            print(len({{*mine, *told.read().split()}}))
    """
    assert said(up, FORKED + textwrap.dedent(body)) == ["[0, 0, 0, 0]", "20"]


def test_a_fork_waits_for_a_client_that_another_thread_creates(monkeypatch):
    """Check that the lock of forks is held, because a child that inherits a lock of OpenSSL hangs."""
    held = []

    class Watched(httpx2.AsyncClient):
        def __init__(self, **options):
            held.append(FORK_LOCK._is_owned())
            super().__init__(**options)

    monkeypatch.setattr(httpx2, "AsyncClient", Watched)
    HttpClientTransport(["http://127.0.0.1:9"])._connect()
    assert held == [True]


def test_a_fork_beside_busy_threads_does_not_hang(up):
    body = """
        ended = threading.Event()

        def busy():
            while not ended.is_set():
                send_email.sync.submit(to="busy")

        threads = [threading.Thread(target=busy) for _ in range(3)]
        [thread.start() for thread in threads]
        codes = []
        for n in range(10):
            if (pid := os.fork()) == 0:
                child(n)
                os._exit(0)
            codes.append(os.waitpid(pid, 0)[1])
        ended.set()
        [thread.join() for thread in threads]
        print(codes)
    """
    assert said(up, FORKED + textwrap.dedent(body)) == [str([0] * 10)]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_of_multiprocessing_submit(up, method):
    body = f"""
        import multiprocessing

        if __name__ == "__main__":
            used_before()
            with multiprocessing.get_context({method!r}).Pool(2) as pool:
                print(len({{id for ids in pool.map(child, range(4)) for id in ids}}))
                pool.close()
                pool.join()
    """
    assert said(up, FORKED + textwrap.dedent(body)) == ["16"]


def test_an_iterator_of_the_parent_is_refused_in_a_child(up):
    body = """
        ended = threading.Event()

        def busy():
            while not ended.is_set():
                send_email.sync.submit(to="busy")

        thread = threading.Thread(target=busy)
        thread.start()
        events = app.client.sync.stream("executions")
        next(events)
        ended.set()
        thread.join()
        if (pid := os.fork()) == 0:
            try:
                next(events)
            except RuntimeError as error:
                print(error, flush=True)
            os._exit(0)
        os.waitpid(pid, 0)
        events.close()
    """
    assert said(up, body) == ["This iterator belongs to the process that this one was forked from. Begin a new one."]


def test_a_closed_client_opens_again(up):
    body = """
        with app.client.sync as client:
            client.submit("send_email", {"to": "a"})
        send_email.sync.submit(to="b")

        async def main():
            async with app.client:
                await send_email.submit(to="c")
            await send_email.submit(to="d")

        asyncio.run(main())
        asyncio.run(main())
        print("fine")
    """
    assert said(up, body) == ["fine"]


def test_a_prefork_server_with_threads_submits_in_every_request(up):
    body = """
        import urllib.request
        from concurrent.futures import ThreadPoolExecutor
        from socketserver import ForkingMixIn, ThreadingMixIn
        from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

        class Quiet(WSGIRequestHandler):
            def log_message(self, *_): ...

        class Forks(ForkingMixIn, WSGIServer): ...

        class Threads(ThreadingMixIn, WSGIServer): ...

        def wsgi(environ, start_response):
            start_response("200 OK", [])
            blocking = send_email.sync.submit(to="a")
            return [f"{blocking.id} {asyncio.run(send_email.submit(to='b')).id}".encode()]

        def ask(server):
            with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}", timeout=60) as answer:
                return answer.read().decode().split()

        send_email.sync.submit(to="preload")
        for kind in (Forks, Threads):
            server = make_server("127.0.0.1", 0, wsgi, kind, Quiet)
            serving = threading.Thread(target=server.serve_forever)
            serving.start()
            with ThreadPoolExecutor(4) as pool:
                answers = list(pool.map(ask, [server] * 8))
            server.shutdown()
            serving.join()
            server.server_close()
            print(len({id for ids in answers for id in ids}))
    """
    assert said(up, body) == ["16", "16"]


STREAMS = """
def feed():
    while not fed.wait(0.05):
        send_email.sync.submit(to="a")

fed = threading.Event()
feeding = threading.Thread(target=feed)
feeding.start()
"""


@pytest.mark.parametrize(
    "left", ["pass", "await events.aclose()", "kept.append(events)", "kept.append(asyncio.create_task(anext(events)))"]
)
def test_a_stream_that_is_left_leaves_no_connections(up, left):
    body = f"""
        kept = []

        async def main():
            for _ in range(3):
                events = app.client.stream("executions")
                async for event in events:
                    break
                {left}
            return event.kind

        print(asyncio.run(main()))
        fed.set()
        feeding.join()
    """
    assert said(up, STREAMS + textwrap.dedent(body)) == ["execution"]


def test_python_exits_with_open_streams(up):
    body = """
        def follow():
            for event in app.client.sync.stream("executions"):
                followed.set()

        followed = threading.Event()
        threading.Thread(target=follow, daemon=True).start()
        followed.wait()
        events = app.client.sync.stream("executions")
        print(next(events).kind)
        fed.set()
        feeding.join()
    """
    assert said(up, STREAMS + textwrap.dedent(body)) == ["execution"]


def test_an_interrupt_of_a_stream_is_an_interrupt(up):
    body = """
        import signal

        def interrupt(*_):
            raise KeyboardInterrupt

        signal.signal(signal.SIGALRM, interrupt)
        for stream in (app.client.sync.stream("workers"), app.client.sync.stream("workers", every="60s")):
            signal.setitimer(signal.ITIMER_REAL, 1)
            try:
                for event in stream:
                    pass
            except KeyboardInterrupt:
                print(send_email.sync.submit(to="a").status)
    """
    assert said(up, body) == ["queued", "queued"]


def test_unclosed_clients_are_closed_without_a_warning(up):
    body = """
        import gc

        from horae import Client, SyncClient

        def opened():
            gc.collect()
            return len(os.listdir("/proc/self/fd"))

        async def main():
            for _ in range(10):
                await Client().submit("send_email", {"to": "a"})
                SyncClient().submit("send_email", {"to": "a"})
            async with asyncio.timeout(60):
                while opened() > 12:  # two loops use three each
                    await asyncio.sleep(0.01)

        asyncio.run(main())
        SyncClient().submit("send_email", {"to": "a"})
    """
    assert said(up, body) == []


def test_submissions_at_exit_are_made(up):
    body = """
        import atexit

        class Last:
            def __del__(self):
                try:
                    send_email.sync.submit(to="too late")
                except RuntimeError as error:
                    print(str(error).partition(",")[0])

        def late():
            threading.main_thread().join()
            print(send_email.sync.submit(to="b").status)

        atexit.register(lambda: print(send_email.sync.submit(to="a").status))
        threading.Thread(target=late).start()
        keep = Last()
        send_email.sync.submit(to="a")
    """
    assert said(up, body) == ["queued", "queued", "Python is ending"]


def test_a_submission_that_is_not_awaited_warns_with_its_line(up):
    body = """
        def handle():
            send_email.submit(to="a")

        handle()
        handle()
        execution = send_email.submit(to="a")
        try:
            print(execution.id)
        except AttributeError as error:
            print(error)
        print(execution)
        execution.close()
    """
    done = script(up, body)
    lines = done.stderr.splitlines()
    remedy = (
        "send_email.submit(...) was not awaited, so nothing was submitted. Write `await send_email.submit(...)`,"
        " or `send_email.sync.submit(...)` in code without async"
    )
    assert lines[0] == lines[2] == f"{up.folder}/script.py:6: NotSubmitted: {remedy}"
    assert len(lines) == 4
    assert done.stdout.splitlines() == [f"There is no 'id' yet: {remedy}", f"<{remedy}>"]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_job_is_pickled_like_a_function(up, method):
    body = f"""
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor

        if __name__ == "__main__":
            send_email.sync.submit(to="before")
            with ProcessPoolExecutor(1, multiprocessing.get_context({method!r})) as pool:
                print(pool.submit(send_email.sync.submit, to="a").result(60).status)
    """
    assert said(up, body) == ["queued"]


def test_other_kinds_of_event_loops_are_refused_with_a_remedy(up):
    body = """
        waiting = send_email.submit(to="a").__await__()
        try:
            next(waiting)
        except RuntimeError as error:
            print(str(error).partition(".")[0])
        try:
            send_email.sync.delay(to="a")
        except AttributeError as error:
            print(error)
    """
    assert said(up, body) == [
        "No event loop of asyncio runs here",
        "send_email.sync has no .delay(...). Write `send_email.sync.submit(...)`.",
    ]
