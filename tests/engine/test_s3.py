"""The S3 protocol: a server that answers ListObjectsV2 in pages, and a watch that reads them."""

import asyncio
import json
from collections.abc import AsyncIterator
from urllib.parse import parse_qs, urlsplit

import pytest

from horae.engine.storage import buckets
from horae.errors import BadInput
from horae.features.events.engine.watching import bucket
from horae.features.events.engine.watching.bucket import in_words
from horae.features.events.engine.watching.object_versions import ObjectVersion
from horae.features.events.engine.watching.watcher import Places
from horae.model.triggers.decisions.external import WatchTrigger

OBJECTS = [f"in/{n:03}.csv" for n in range(25)] + ["inner/z", "out/a"]
PAGE = 10


class S3:
    """A server with the necessary part of the protocol; signatures are not checked."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.authorised: set[bool] = set()
        self.url = ""
        self.refusal: tuple[str, str] | None = None  # a status and a body for the answer, instead of a page

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        target = (await reader.readline()).decode().split()[1]
        headers = {}
        while (header := await reader.readline()) not in (b"\r\n", b""):
            name, _, value = header.decode().partition(":")
            headers[name.lower()] = value.strip()
        self.requests.append(target)
        self.authorised.add(headers.get("authorization", "").startswith("AWS4-HMAC-SHA256 Credential=test/"))
        status, text = self.refusal or ("200 OK", self._listing(target))
        head = f"HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {len(text.encode())}\r\n\r\n"
        writer.write(f"{head}{text}".encode())
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


async def listed(url: str) -> list[ObjectVersion]:
    return [one async for page in bucket.pages(WatchTrigger(url=url)) for one in page]


async def test_a_prefix_is_listed_through_all_its_pages(s3: S3):
    pages = Places(["s3://drop"]).pages(WatchTrigger(url="s3://drop/in/"))

    found = [one async for page in pages for one in page]

    assert [one.key for one in found] == [f"{n:03}.csv" for n in range(25)]
    assert (found[0].etag, found[0].size) == ("etag-in/000.csv", 0)
    assert len({one.digest for one in found}) == 25
    assert len(s3.requests) == 3
    assert s3.authorised == {True}


async def test_a_store_that_does_not_answer_is_an_error_and_no_crash(s3: S3, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setattr(buckets, "_RETRY", {"max_retries": 0})

    with pytest.raises(BadInput, match=r'"drop" cannot be listed at http://127\.0\.0\.1:1'):
        await listed("s3://drop/in/")


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        ("404 Not Found", "NoSuchBucket", 'There is no bucket "drop": NoSuchBucket: It is so.'),
        ("403 Forbidden", "AccessDenied", '"drop" may not be listed: AccessDenied: It is so.'),
        ("403 Forbidden", "InvalidAccessKeyId", "AWS_ACCESS_KEY_ID"),
        ("403 Forbidden", "", "may not be listed: 403 Forbidden."),
        ("400 Bad Request", "PermanentRedirect", "cannot be listed at http://127.0.0.1"),
    ],
)
async def test_a_refusal_of_a_store_is_reported_in_its_words_with_a_remedy(s3: S3, status, code, words):
    s3.refusal = (status, f"<?xml version='1.0'?>\n<Error><Code>{code}</Code><Message>It is so.</Message></Error>")
    if not code:
        s3.refusal = (status, "no")

    with pytest.raises(BadInput) as refused:
        await listed("s3://drop/in/")

    assert words in str(refused.value)
    assert refused.value.remedy
    assert "Debug source" not in str(refused.value)


async def test_missing_credentials_are_reported_with_the_settings_to_use():
    error = Exception(
        "Generic S3 error: Error performing PUT http://169.254.169.254/latest/api/token in 5s - timed out"
    )

    assert "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY" in in_words(error, "drop").remedy


async def test_google_cloud_storage_is_listed_too(s3: S3, monkeypatch: pytest.MonkeyPatch, tmp_path):
    account = {
        "gcs_base_url": s3.url,
        "disable_oauth": True,
        "client_email": "",
        "private_key": "",
        "private_key_id": "",
    }
    (tmp_path / "account.json").write_text(json.dumps(account))
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT", str(tmp_path / "account.json"))

    found = await listed("gs://drop/in/")

    assert [one.key for one in found] == [f"{n:03}.csv" for n in range(25)]
