"""`client.erasures`: somebody's data goes, that something ran stays."""

from collections.abc import Mapping
from typing import Any

from horae.client.calls import Caller, path_of
from horae.client.encode import given
from horae.client.views import View


class Erasures:
    """Erases what executions were given, said, returned and left behind."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def create(
        self,
        *,
        job: str | None = None,
        tag: str | None = None,
        key: str | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> View:
        """Erase all that is meant, part by part: how many were looked at and erased, and what has not ended yet."""
        where = given(job=job, tag=tag, key=key, params=None if params is None else dict(params))
        looked_at, erased, live, cursor = 0, 0, list[str](), None
        while True:
            body = {"where": where, **given(cursor=cursor)}
            done = await self._caller.post(path_of("erasures"), body, timeout=600.0)
            looked_at, erased, live = looked_at + done["lookedAt"], erased + done["erased"], live + done["live"]
            cursor = done["nextCursor"]
            if cursor is None:
                return View.of({"lookedAt": looked_at, "erased": erased, "live": live})
