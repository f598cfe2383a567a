"""Alerts reach a real webhook (signed) and a real mail server (with a login); a killed server loses no notice."""

import base64
import json
import socketserver
import threading
from collections.abc import Callable
from email import message_from_bytes
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any

import pytest

from horae.env import SystemClock
from horae.model.base.webhook_signature import verify
from tests.acceptance.fleet import Fleet
from tests.waiting import eventually_sync

pytestmark = pytest.mark.timeout(180)
PASSWORD = "correct horse battery"
RULE = {"name": "old", "kind": "queue-age", "after": "1s", "channels": ["ops", "mail"]}


class Site(ThreadingHTTPServer):
    """A webhook receiver that accepts requests or answers that it is busy."""

    def __init__(self) -> None:
        self.is_open, self.heard = True, []
        super().__init__(("127.0.0.1", 0), Receive)

    def received(self, kind: str) -> list[tuple[str, dict[str, Any], bool]]:
        """Return the received events of a kind: id, data, and whether each was accepted."""
        return [(id, body["data"], taken) for id, body, taken in self.heard if body["type"] == f"alert.{kind}"]


class Receive(BaseHTTPRequestHandler):
    server: Any

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower().encode(): value.encode() for name, value in self.headers.items()}
        signed = verify(headers, body, [self.server.secret], SystemClock().now())
        taken = self.server.is_open
        self.server.heard.append((signed.id, json.loads(body), taken))
        self.send_response(204 if taken else 503)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Refuse all connections, since nothing listens."""


class Post(socketserver.ThreadingTCPServer):
    """A mail server that stores messages by the user who logged in."""

    allow_reuse_address = daemon_threads = True

    def __init__(self) -> None:
        self.mails: list[Message] = []
        super().__init__(("127.0.0.1", 0), Speak)


class Speak(socketserver.StreamRequestHandler):
    server: Any

    def handle(self) -> None:
        self.say("220 post")
        signed_in = False
        while line := self.rfile.readline().decode().strip():
            verb = line[:4].upper()
            if verb == "EHLO":
                self.say("250-post\r\n250 AUTH PLAIN")
            elif verb == "AUTH":
                signed_in = base64.b64decode(line.split()[2]).decode() == f"\0horae\0{PASSWORD}"
                self.say("235 welcome" if signed_in else "535 who are you?")
            elif not signed_in:
                self.say("530 sign in")
            elif verb == "DATA":
                self.say("354 go on")
                lines = iter(self.rfile.readline, b".\r\n")
                self.server.mails.append(message_from_bytes(b"".join(lines)))
                self.say("250 taken")
            else:
                self.say("221 bye" if verb == "QUIT" else "250 yes")

    def say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())


@pytest.fixture
def site():
    yield from _served(Site())


@pytest.fixture
def post():
    yield from _served(Post())


def _served(server: socketserver.BaseServer):
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def start(fleet: Fleet, name: str) -> str:
    key = base64.b64encode(bytes(32)).decode()
    return fleet.add_server(name, HORAE_MASTER_KEY=key)


def delivery_states(fleet: Fleet, server: str) -> dict[str, Any]:
    """Return the delivery states of the firing alert, by channel."""
    (alert,) = fleet.get("/alerts?state=firing", server=server)["items"] or [{"deliveries": []}]
    usual = {"ops": {"lastError": "", "state": ""}}
    return usual | {one["channel"]: {**one, "lastError": one["lastError"] or ""} for one in alert["deliveries"]}


def wait_for_evaluation(fleet: Fleet, check: Callable[[], Any]) -> None:
    """Wait for the result of an evaluation of the rules; a changed rule is evaluated at once."""
    revisions = count(1)

    def look() -> Any:
        fleet.request("PUT", "/alert-rules/old", {**RULE, "description": f"{next(revisions)}"}).raise_for_status()
        return check()

    eventually_sync(look, within=60, every=0.3)


def test_alerts_are_delivered_although_servers_are_killed(pg_fleet: Fleet, site: Site, post: Post):
    fleet = pg_fleet
    start(fleet, "a")
    fleet.request("PUT", "/secrets/smtp", {"value": PASSWORD}).raise_for_status()
    url = f"http://127.0.0.1:{site.server_port}/"
    site.secret = fleet.post("/alert-channels", {"name": "ops", "kind": "webhook", "url": url})["secret"]
    mail = {"host": "127.0.0.1", "port": post.server_address[1], "tls": "none", "from": "horae@x.y", "to": "ops@x.y"}
    mail |= {"name": "mail", "kind": "email", "username": "horae", "password": "secret://smtp"}
    fleet.post("/alert-channels", mail)
    fleet.post("/jobs", {"name": "report", "command": "true"})
    first = fleet.submit("report")
    (tried,) = fleet.post("/alert-channels/mail/test")["deliveries"]
    assert (tried["state"], post.mails[0]["subject"]) == ("delivered", "[TEST] test: test")

    wait_for_evaluation(fleet, lambda: site.received("firing") and len(post.mails) == 2)
    assert site.received("firing")[0][1]["subject"] == "default"
    assert "default: the next execution has been queued for" in post.mails[1].get_payload()
    fleet.post(f"/executions/{first}/cancel")
    wait_for_evaluation(fleet, lambda: site.received("recovered") and len(post.mails) == 3)
    assert post.mails[2]["subject"] == "[RECOVERED] default: old"

    site.is_open = False
    fleet.submit("report")
    wait_for_evaluation(fleet, lambda: "503" in delivery_states(fleet, "a")["ops"]["lastError"])
    fleet.servers["a"].kill()
    site.is_open = True
    start(fleet, "b")
    eventually_sync(lambda: site.received("firing")[-1][2], within=60)
    ids = [id for id, *_ in site.received("firing")]
    assert len(set(ids)) == 2
    assert ids[-1] == ids[1], "it is known by its id, however often it comes"
    eventually_sync(lambda: delivery_states(fleet, "b")["ops"]["state"] == "delivered", within=60)
