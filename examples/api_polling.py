"""API polling: ask an HTTP API for new items, every half minute, politely.

If the server answers "too many requests", it is asked again at the time that it gives; after "not found" it is not
asked again. Known items are remembered by their ETag, so that an unchanged answer costs almost nothing.
"""

import json
import urllib.request
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

from horae import App, Context, GiveUp, Retry, every

app = App("api-polling")


def by_error(failures: int, error: BaseException) -> str | bool | None:
    """Retry errors of the network or the server soon, then later; other errors follow the job's policy."""
    if isinstance(error, OSError):
        return f"{min(300, 2**failures // 2)}s"
    return None


@app.job("poll", schedule=every("30s", misfire="skip"), retry=by_error, timeout="20s")
def poll(
    ctx: Context, url: str = "http://127.0.0.1:8000/orders.json", state: str = "poll-state.json"
) -> dict[str, Any]:
    """Fetch changes and submit a job for every new item."""
    known = read_state(Path(state))
    try:
        request = urllib.request.Request(url, headers={"If-None-Match": known["etag"]})
        with urllib.request.urlopen(request, timeout=15) as response:
            items, etag = json.load(response), response.headers.get("ETag", "")
    except HTTPError as answer:
        return judge(answer)
    fresh = [item for item in items if item["id"] > known["last"]]
    for item in fresh:
        ctx.sync.submit(handle, {"item": item}, key=f"item-{item['id']}")
    write_state(Path(state), {"etag": etag, "last": max([known["last"], *(item["id"] for item in items)])})
    return {"new": len(fresh)}


def judge(answer: HTTPError) -> dict[str, Any]:
    """Decide what to do with an answer that is not a success."""
    if answer.code == 304:
        return {"new": 0}
    if answer.code == 429:
        raise Retry("The API is busy.", after=int(answer.headers.get("Retry-After", "60")))
    if answer.code == 404:
        raise GiveUp(f"There is nothing at {answer.url}.")
    raise answer


@app.job("handle-item", retries=3)
async def handle(ctx: Context, item: dict[str, Any]) -> None:
    """Process one item."""
    ctx.log("item %s: %s", item["id"], item["name"])


def read_state(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text()) if path.exists() else {"etag": "", "last": 0}


def write_state(path: Path, state: dict[str, Any]) -> None:
    """Write the file, complete or not at all."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps(state))
    new.replace(path)
