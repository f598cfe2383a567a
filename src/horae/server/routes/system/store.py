"""The store: what it is, which revision its tables have, and the settings that matter."""

from horae.env import Instant
from horae.features.archive.engine.archiver import DUTY
from horae.model.base.instant import format_instant
from horae.model.base.view import Time, View
from horae.model.tenancy.sealed_view import SealedView
from horae.server.access import OVERSEE
from horae.server.call import Call
from horae.server.reply import Reply, ok
from horae.server.route import API, get
from horae.server.scopes import closed
from horae.store.checkup import Facts, examine
from horae.store.executions.reads import sweep


class TroubleView(View, frozen=True, kw_only=True):
    """Why something cannot be done, and since when."""

    problem: str
    since: Time


class StoreView(View, frozen=True, kw_only=True):
    """What the store says of itself; `revision` is its tables', `newest` the one this server knows.

    `archive` says why nothing can be archived, and is null while nothing is wrong.
    """

    kind: str
    version: str
    revision: str | None
    newest: str
    settings: dict[str, str]
    free_bytes: int | None
    sealed: SealedView
    archive: TroubleView | None = None

    @classmethod
    def of(cls, facts: Facts, sealed: SealedView, trouble: tuple[str, Instant] | None = None) -> "StoreView":
        return cls(
            kind=facts.dialect,
            version=facts.product,
            revision=facts.version,
            newest=facts.newest,
            settings=facts.settings,
            free_bytes=facts.free,
            sealed=sealed,
            archive=None if trouble is None else TroubleView(problem=trouble[0], since=format_instant(trouble[1])),
        )


@get(f"{API}/store", "store.get", StoreView, access=OVERSEE, scope=closed)
async def get_store(call: Call) -> Reply:
    """Read what the store says of itself: kind, revision, settings, what is sealed, and why nothing is archived."""
    facts = await examine(call.node.store.driver, call.node.env.now())
    trouble = await call.node.store.read(lambda: sweep.trouble_of(DUTY))
    return ok(StoreView.of(facts, await call.node.sealing_check.look(), trouble))
