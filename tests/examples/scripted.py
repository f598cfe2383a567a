"""A scripted server: it speaks the worker protocol with one worker, and records all its messages."""

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.waiting import eventually_sync

JOB = "01a1de89-03cd-785a-b0c4-55b22dd1aae5"
PARCEL = "01a1de89-0564-7779-af64-30cd84530000"
NOW = 1_794_734_884_000_000
HEARTBEAT = 300_000

Refusal = tuple[int, dict[str, Any], dict[str, str]]


class ScriptedServer:
    """A server that answers exchanges with the grants of `grant`, the errors of `refuse` and the updates in `news`."""

    def __init__(self) -> None:
        self.registrations: list[dict[str, Any]] = []
        self.exchanges: list[dict[str, Any]] = []  # accepted exchanges
        self.refused: list[dict[str, Any]] = []
        self.installations: list[str | None] = []  # the installations named in calls
        self.seen: dict[tuple[int, int], bytes] = {}
        self.waiting: list[dict[str, Any]] = []  # exchanges that wait for an answer
        self.deleted: list[str] = []
        self.refuse: Callable[[dict[str, Any]], Refusal | None] = lambda up: None
        self.goodbye = 204
        self.key: str | None = None  # the only valid key
        self.registered: dict[str, Any] = {}  # additional fields of every registration's answer
        self._changed = threading.Condition()
        self._grants: list[dict[str, Any]] = []
        self._jobs: dict[str, Any] = {}
        self.news: dict[str, Any] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    # The script

    def grant(self, function: str, items: int = 1, *, attempt: int = 1, lo: int = 0, **job: Any) -> None:
        """Grant items of a function to the next exchange; `job` is the rest of the job's definition."""
        grant, version = job.pop("grant", {}), len(self._jobs) + 1
        definition = {"name": function, "task": {"kind": "python", "function": function}, **job}
        token = (27_613_522 << 32) + attempt
        slice = {
            "parcel": PARCEL, "lo": lo, "hi": lo + items, "job": JOB, "version": version, "attempt": attempt,
            "token": token, "tokenText": str(token), "dueAt": NOW, "items": [{}] * items, **grant,
        }  # fmt: skip
        with self._changed:
            self._jobs[f"{JOB}:{version}"] = definition
            self._grants.append(slice)
            self._changed.notify_all()

    def ask(self, kind: str, item: int = 0) -> None:
        """Send a request about a running item with the next answer."""
        self.tell(requests=[{"parcel": PARCEL, "item": item, "attempt": 1, "kind": kind}])

    def tell(self, **news: Any) -> None:
        with self._changed:
            self.news = news
            self._changed.notify_all()

    # The worker's messages

    def outcomes(self) -> dict[int, dict[str, Any]]:
        """Return the accepted outcomes, by item."""
        return {one["lo"]: one for up in list(self.exchanges) for one in up.get("outcomes", ())}

    def outcome(self, item: int = 0, within: float = 10) -> dict[str, Any]:
        return eventually_sync(lambda: self.outcomes().get(item), within=within)

    def lines(self) -> list[tuple[int, str]]:
        """Return the numbers and texts of the accepted log lines."""
        logs = [log for up in list(self.exchanges) for log in up.get("logs", ())]
        return [(log["seq"] + i, line[2]) for log in logs for i, line in enumerate(log["lines"])]

    # HTTP

    def _exchange(self, body: bytes) -> Refusal:
        up = json.loads(body)
        place = up["channel"], up["n"]
        with self._changed:
            assert self.seen.setdefault(place, body) == body or place in {_place(one) for one in self.refused}
        if (refusal := self.refuse(up)) is not None:
            self.refused.append(up)
            return refusal
        self.exchanges.append(up)
        with self._changed:
            self.waiting.append(up)
            until = up.get("wait", 0) / 1_000_000
            self._changed.wait_for(lambda: self._fitting(up) or self.news, until)
            self.waiting.remove(up)
            taken = self._fitting(up)
            self._grants = [one for one in self._grants if one not in taken]
            news, self.news = self.news, {}
            jobs = {key: self._jobs[key] for key in {f"{JOB}:{one['version']}" for one in taken}}
        return 200, {"slices": taken, "jobs": jobs, "now": NOW, "fromTheFuture": 1, **news}, {}

    def _fitting(self, up: dict[str, Any]) -> list[dict[str, Any]]:
        found, free = [], up.get("free", 0)
        for grant in self._grants:
            slots = (grant["hi"] - grant["lo"]) * self._jobs[f"{JOB}:{grant['version']}"].get("slots", 1)
            if slots <= free:
                found.append(grant)
                free -= slots
        return found

    def _answer(self, method: str, path: str, body: bytes) -> Refusal:
        if method == "DELETE":
            self.deleted.append(path)
            return self.goodbye, {"detail": "gone"}, {}
        if path.endswith("/exchange"):
            return self._exchange(body)
        self.registrations.append(json.loads(body))
        self.seen.clear()
        timing = {"sessionTimeout": 15_000_000, "heartbeat": HEARTBEAT, "now": NOW}
        return (
            201,
            {"sessionId": f"s{len(self.registrations)}", "namespace": "default", **timing, **self.registered},
            {},
        )

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        scripted = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _serve(self) -> None:
                scripted.installations.append(self.headers.get("horae-installation"))
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                is_known = scripted.key is None or self.headers["authorization"] == f"Bearer {scripted.key}"
                refused = problem(401, "unauthorized")
                status, answer, headers = scripted._answer(self.command, self.path, body) if is_known else refused
                text = b"" if status == 204 else json.dumps(answer).encode()
                self.send_response(status)
                for name, value in {**headers, "content-length": str(len(text))}.items():
                    self.send_header(name, value)
                with suppress(OSError):  # a killed worker does not read
                    self.end_headers()
                    self.wfile.write(text)

            do_POST = do_DELETE = _serve  # noqa: N815

            def log_message(self, *_: Any) -> None:
                pass

        return Handler


def _place(up: dict[str, Any]) -> tuple[int, int]:
    return up["channel"], up["n"]


def problem(status: int, type: str = "bad-input", **more: Any) -> Refusal:
    """Return an error as the server writes it."""
    return status, {"type": f"urn:horae:{type}", "status": status, "detail": "no", **more}, {}
