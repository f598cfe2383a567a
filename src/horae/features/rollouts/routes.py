"""Rollouts: a share of a job's new executions runs another version, which is compared, then promoted or aborted."""

from typing import Annotated, Any

from msgspec import Meta

from horae.errors import Conflict, NotFound, Stale
from horae.features.rollouts.model.read import ROLLOUT
from horae.features.rollouts.model.view import RolloutView
from horae.features.rollouts.part import RolloutsPart
from horae.model.fields.derived import body
from horae.server.access import EDIT, VIEW
from horae.server.call import ApiCall
from horae.server.reading.bodies import RequestBody
from horae.server.reply import Response, ok
from horae.server.route import API, CHANGES, get, post, put
from horae.server.routes.definitions.jobs import IF_MATCH
from horae.server.scopes import by_job

REFUSES = (NotFound, Conflict, Stale)
RolloutBody = body(
    ROLLOUT,
    "RolloutBody",
    "The versions that new executions run: `version` or `change` with a `share`, or weights of `versions`.",
    RequestBody,
)


class PromoteRollout(RequestBody, frozen=True, kw_only=True):
    """The version that becomes the current one; by default, the only other version of the rollout."""

    version: (
        Annotated[int, Meta(ge=1, le=2**31 - 1, description="The version; needed if the rollout tries several.")] | None
    ) = None


class AbortRollout(RequestBody, frozen=True, kw_only=True):
    """The reason why a rollout is aborted."""

    reason: Annotated[str, Meta(description="The reason, stored with the rollout.")] = ""


@get(f"{API}/jobs/{{ref}}/rollout", "rollouts.get", RolloutView, access=VIEW, scope=by_job, refuses=(NotFound,))
async def get_rollout(call: ApiCall) -> Response:
    """Read a job's newest rollout: shares, failure rates and durations of its versions."""
    return ok(await call.node.part(RolloutsPart).rollouts.get(call.namespace, call.path("ref")))


@put(
    f"{API}/jobs/{{ref}}/rollout", "rollouts.put", RolloutView,
    access=EDIT, scope=by_job, audit=CHANGES, takes=RolloutBody, headers=IF_MATCH, refuses=REFUSES,
)  # fmt: skip
async def put_rollout(call: ApiCall, body: dict[str, Any]) -> Response:
    """Begin a rollout of other versions to shares of a job's new executions, or change the active rollout."""
    ref, if_match = call.path("ref"), call.if_match()
    return ok(
        await call.node.part(RolloutsPart).rollouts.put(call.namespace, ref, body, by=call.caller, if_match=if_match)
    )


@post(
    f"{API}/jobs/{{ref}}/rollout/promote", "rollouts.promote", RolloutView,
    access=EDIT, scope=by_job, audit=CHANGES, headers=IF_MATCH, refuses=REFUSES,
)  # fmt: skip
async def promote(call: ApiCall, body: PromoteRollout) -> Response:
    """Make a version of the rollout the present one, and end the rollout."""
    ref, if_match = call.path("ref"), call.if_match()
    done = await call.node.part(RolloutsPart).rollouts.promote(
        call.namespace, ref, body.version, by=call.caller, if_match=if_match
    )
    return ok(done)


@post(
    f"{API}/jobs/{{ref}}/rollout/abort", "rollouts.abort", RolloutView,
    access=EDIT, scope=by_job, audit=CHANGES, headers=IF_MATCH, refuses=REFUSES,
)  # fmt: skip
async def abort(call: ApiCall, body: AbortRollout) -> Response:
    """End a rollout: all new executions run the present version."""
    ref, if_match = call.path("ref"), call.if_match()
    done = await call.node.part(RolloutsPart).rollouts.abort(
        call.namespace, ref, by=call.caller, reason=body.reason, if_match=if_match
    )
    return ok(done)
