"""`client.erasures`: erasure of personal data of executions; the fact that they ran stays."""

from typing import Unpack

from horae.client.encode import given
from horae.client.transport.calls import Resource, path_of
from horae.client.views import ApiDocument
from horae.features.erasure.options import ErasureOptions


class ErasuresResource(Resource):
    """Erase the params, logs, results and files of executions."""

    async def create(self, **which: Unpack[ErasureOptions]) -> ApiDocument:
        """Erase all matching executions' data, part by part; return the numbers checked and erased, and those left out.

        `live` executions have not ended yet; params of `unread` ones are sealed with a key that the server does not
        have; `unreadFiles` of the archive are damaged or missing.
        """
        where = given(**which)
        looked_at, erased, cursor = 0, 0, None
        left: dict[str, list[str]] = {"live": [], "unread": [], "unreadFiles": []}
        while True:
            body = {"where": where, **given(cursor=cursor)}
            done = await self._caller.post(path_of("erasures"), body, timeout=600.0)
            looked_at, erased = looked_at + done["lookedAt"], erased + done["erased"]
            left = {why: ids + done[why] for why, ids in left.items()}
            cursor = done["nextCursor"]
            if cursor is None:
                return ApiDocument.of({"lookedAt": looked_at, "erased": erased, **left})
