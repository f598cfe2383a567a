"""A watch for a termination notice: a file that appears, or a change in a cloud's metadata."""

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

import structlog

from horae.env import Clock
from horae.errors import BadInput
from horae.worker.notices.notice import WELL_KNOWN, TerminationNotice, read_notice

if TYPE_CHECKING:
    from horae.outbound.fetch import Outbound, OutboundAnswer
    from horae.worker.worker import WorkerRuntime

CHECK_EVERY = 1.0  # seconds; the shortest notice comes 30 s before the end
PATIENCE = 2.0  # seconds to wait for an answer
AZURE_NAME = "/metadata/instance/compute/name"
AWS_TOKEN = "/latest/api/token"
# Google and Azure answer only requests with their header; other services ignore it.
HEADERS = {"Metadata-Flavor": "Google", "Metadata": "true"}
log = structlog.get_logger("horae.worker")


async def watch_for_notice(clock: Clock, file: str = "", url: str = "") -> TerminationNotice:
    """Wait for a notice in a file, at a URL, or at a cloud's well-known URL (aws, gcp, azure); return it."""
    source = _Url(WELL_KNOWN.get(url, url)) if url else None
    try:
        while True:
            notice = _in_file(Path(file)) if file else None
            if notice is None and source is not None:
                notice = await source.look()
            if notice is not None:
                return notice
            await clock.sleep(CHECK_EVERY)
    finally:
        if source is not None:
            await source.close()


def _in_file(path: Path) -> TerminationNotice | None:
    """Read a notice from a file. Any existing file is a notice, unless its text says that there is none."""
    try:
        text = path.read_text(errors="replace")
    except OSError:
        return None
    try:
        return read_notice(text.strip() or "true")
    except BadInput:
        return TerminationNotice()


class _Url:
    """A URL that is polled for a notice. A problem with the URL is logged once, and does not count as a notice."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._made: Outbound | None = None
        self._token = ""
        self._machine: str | None = None
        self._said = ""

    async def look(self) -> TerminationNotice | None:
        try:
            answer = await self._get(self._url)
            if answer.status == 401:  # version 2 of EC2's metadata service requires a token
                await self._fetch_token()
                answer = await self._get(self._url)
            if answer.status != 200:  # EC2 answers 404 without a notice
                return None
            return read_notice(_text(answer), await self._machine_of(_text(answer)))
        except Exception as error:  # no problem with the metadata may end the watch
            self._say(str(error) or type(error).__name__)
            return None

    async def close(self) -> None:
        if self._made is not None:
            await self._made.close()

    def _say(self, problem: str) -> None:
        if problem != self._said:
            self._said = problem
            log.warning("cannot read the termination notice", url=self._url, problem=problem)

    async def _machine_of(self, text: str) -> str:
        """Return Azure's name of this machine, if the answer is Azure's list of events."""
        if '"Events"' not in text:
            return ""
        if self._machine is None:
            answer = await self._get(_at_same_host(self._url, AZURE_NAME, "api-version=2021-02-01&format=text"))
            self._machine = _text(answer).strip() if answer.status == 200 else ""
        return self._machine

    async def _fetch_token(self) -> None:
        ttl = {"X-aws-ec2-metadata-token-ttl-seconds": "21600"}
        answer = await self._ask("PUT", _at_same_host(self._url, AWS_TOKEN), ttl)
        self._token = _text(answer) if answer.status == 200 else ""

    async def _get(self, url: str) -> "OutboundAnswer":
        token = {"X-aws-ec2-metadata-token": self._token} if self._token else {}
        return await self._ask("GET", url, {**HEADERS, **token})

    async def _ask(self, method: str, url: str, headers: dict[str, str]) -> "OutboundAnswer":
        return await self._outbound().fetch(method, url, headers=headers, within=PATIENCE)

    def _outbound(self) -> "Outbound":
        """Return the HTTP client, created at its first use.

        It may call only the host of the URL, at any address, because the worker's owner has configured this URL.
        """
        if self._made is None:
            from horae.outbound.allow import AllowedAddresses
            from horae.outbound.fetch import Outbound

            self._made = Outbound(AllowedAddresses(hosts=frozenset({(urlsplit(self._url).hostname or "").lower()})))
        return self._made


def _text(answer: "OutboundAnswer") -> str:
    return answer.body.decode(errors="replace")


def _at_same_host(url: str, path: str, query: str = "") -> str:
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc, path, query, ""))


async def drain_on_notice(worker: "WorkerRuntime", clock: Clock, file: str, url: str) -> None:
    """Wait for a notice, then let the worker leave before its machine is taken away."""
    worker.leave_by(await watch_for_notice(clock, file, url))
