"""`client.erasures`: erase personal data; the records of executions stay."""

from typing import Unpack

from horae.client.encode import given
from horae.client.transport.calls import Resource, path_of
from horae.client.views import ApiDocument
from horae.features.erasure.options import ErasureOptions


class ErasuresResource(Resource):
    """Erases the params, results, logs and files of executions."""

    async def create(self, **which: Unpack[ErasureOptions]) -> ApiDocument:
        """Erase all selected executions, by one request after another.

        Return the numbers of examined and erased executions, and lists of what was not erased. Executions in `notEnded`
        have not ended yet. The params of executions in `undecryptable` are encrypted with a key that the server does
        not have. Archive files in `unreadableFiles` are damaged or missing.
        """
        where = given(**which)
        examined, erased, cursor = 0, 0, None
        left: dict[str, list[str]] = {"notEnded": [], "undecryptable": [], "unreadableFiles": []}
        while True:
            body = {"where": where, **given(cursor=cursor)}
            done = await self._caller.post(path_of("erasures"), body, timeout=600.0)
            examined, erased = examined + done["examined"], erased + done["erased"]
            left = {why: ids + done[why] for why, ids in left.items()}
            cursor = done["nextCursor"]
            if cursor is None:
                return ApiDocument.of({"examined": examined, "erased": erased, **left})
