"""S3 as it is spoken: a server that answers ListObjectsV2 in pages, and a watch that goes through them."""

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import parse_qs, urlsplit

import pytest

from horae.engine.watching import bucket
from horae.engine.watching.watcher import Places
from horae.errors import HoraeError
from horae.model.trigger import Watch

OBJECTS = [f"in/{n:03}.csv" for n in range(25)] + ["inner/z", "out/a"]
PAGE = 10


class S3:
    """Just enough of the protocol, without looking at signatures."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.authorised: set[bool] = set()
        self.url = ""

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        target = (await reader.readline()).decode().split()[1]
        headers = {}
        while (header := await reader.readline()) not in (b"\r\n", b""):
            name, _, value = header.decode().partition(":")
            headers[name.lower()] = value.strip()
        self.requests.append(target)
        self.authorised.add(headers.get("authorization", "").startswith("AWS4-HMAC-SHA256 Credential=test/"))
        body = self._listing(target).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    def _listing(self, target: str) -> str:
        query = {name: values[0] for name, values in parse_qs(urlsplit(target).query).items()}
        found = sorted(key for key in OBJECTS if key.startswith(query.get("prefix", "")))
        begun = int(query.get("continuation-token", 0))
        page = found[begun : begun + PAGE]
        more = begun + PAGE < len(found)
        contents = "".join(
            f"<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:0{i % 10}.000Z</LastModified>"
            f"<ETag>&quot;etag-{key}&quot;</ETag><Size>{i}</Size></Contents>"
            for i, key in enumerate(page)
        )
        following = f"<NextContinuationToken>{begun + PAGE}</NextContinuationToken>" if more else ""
        return (
            '<?xml version="1.0" encoding="UTF-8"?>'
            f'<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>drop</Name>'
            f"<IsTruncated>{str(more).lower()}</IsTruncated>{contents}{following}</ListBucketResult>"
        )


@pytest.fixture
async def s3(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[S3]:
    served = S3()
    server = await asyncio.start_server(served.answer, "127.0.0.1", 0)
    served.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    for name, value in {
        "AWS_ENDPOINT_URL": served.url, "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    yield served
    server.close()


async def test_a_prefix_is_listed_through_all_its_pages(s3: S3):
    pages = Places(["s3://drop"]).pages(Watch(url="s3://drop/in/"))

    found = [one async for page in pages for one in page]

    assert [one.key for one in found] == [f"{n:03}.csv" for n in range(25)]
    assert (found[0].etag, found[0].size) == ("etag-in/000.csv", 0)
    assert len({one.digest for one in found}) == 25
    assert len(s3.requests) == 3
    assert s3.authorised == {True}


async def test_a_store_that_does_not_answer_is_an_error_and_no_crash(s3: S3, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setattr(bucket, "_RETRY", {"max_retries": 0})

    with pytest.raises(Exception, match=r"127\.0\.0\.1") as failed:
        async for _ in bucket.pages(Watch(url="s3://drop/in/")):
            pass
    assert not isinstance(failed.value, HoraeError)
