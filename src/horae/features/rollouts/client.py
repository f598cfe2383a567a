"""`client.rollouts`: gradual rollouts of job versions, by shares of new executions."""

from datetime import datetime
from typing import Any, Unpack

from horae.client.encode import given
from horae.client.transport.calls import Resource, path_of
from horae.client.views import ApiDocument
from horae.features.rollouts.options import RolloutOptions


class RolloutInfo(ApiDocument, frozen=True, kw_only=True):
    """A job's newest rollout; `versions` has the share and the statistics of each version."""

    job_id: str
    job: str
    state: str
    since: datetime
    cause: str = ""
    versions: list[dict[str, Any]]


class RolloutsResource(Resource):
    """Start, compare, promote and abort rollouts. `ref` is a job's name or id."""

    async def start(self, ref: str, *, if_match: str | None = None, **options: Unpack[RolloutOptions]) -> RolloutInfo:
        """Begin a rollout, or change the shares of the active one.

        A `share` of new executions runs `version`, or the version that `change` creates. To run several versions, give
        their weights as `versions`.
        """
        body = given(**options)
        if options.get("versions"):
            body["versions"] = {str(version): weight for version, weight in (options["versions"] or {}).items()}
        return RolloutInfo.of(await self._caller.edit("PUT", path_of("jobs", ref, "rollout"), body, if_match))

    # `python -m tools.sdk` writes the methods below, from the routes of rollouts (put: start).

    async def get(self, ref: str) -> RolloutInfo:
        """Read a job's newest rollout: shares, failure rates and durations of its versions."""
        return RolloutInfo.of(await self._caller.get(path_of("jobs", ref, "rollout")))

    async def promote(self, ref: str, *, version: int | None = None) -> RolloutInfo:
        """Make a version of the rollout the present one, and end the rollout.

        `version`: The version; needed if the rollout tries several.
        """
        body = given(version=version)
        return RolloutInfo.of(await self._caller.post(path_of("jobs", ref, "rollout", "promote"), body))

    async def abort(self, ref: str, *, reason: str | None = None) -> RolloutInfo:
        """End a rollout: all new executions run the present version.

        `reason`: The reason, stored with the rollout.
        """
        return RolloutInfo.of(await self._caller.post(path_of("jobs", ref, "rollout", "abort"), given(reason=reason)))
