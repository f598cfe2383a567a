"""Offers: the queues and capabilities of the live workers of a namespace, read from the store and cached."""

from collections.abc import Iterable, Iterator, Sequence

from horae.env import Env
from horae.model.admission.placement.placement import Cost, Requirements, fits, missing_from
from horae.model.definitions.job import Spec
from horae.model.executions.hint import Offer
from horae.store.contract import Store
from horae.store.executions.reads import execution_reads as reads

MET_FOR, UNMET_FOR = 60.0, 5.0  # seconds for which the result of `warning` is cached, without and with a warning
MOST_CACHED = 10_000
FRESH = 20  # offers are cached for this many times as long as reading them took


class WorkerOffers:
    """Offers of live workers. Reading them costs more for a large fleet, so they are read less often."""

    def __init__(self, env: Env, store: Store) -> None:
        self._env, self._store = env, store
        self._known: dict[int, tuple[float, Sequence[Offer]]] = {}
        self._warnings: dict[
            tuple[int, tuple[str, ...], Cost], tuple[float, str | None]
        ] = {}  # needs -> expiry, warning

    async def warning(self, namespace: int, spec: Spec) -> str | None:
        """Return a warning if no worker that the store remembers has offered what a job needs, else None."""
        if not spec.needs and spec.slots == 1 and not spec.resources:
            return None
        needs, now = (namespace, spec.needs, spec.cost), self._env.clock.monotonic()
        until, warning = self._warnings.get(needs, (now, None))
        if now < until:
            return warning
        offered = await self._store.read(lambda: reads.ever_offered(namespace))
        missing = missing_from(Requirements(must=frozenset(spec.needs), cost=spec.cost), offered)
        warning = f"No worker has ever had {' and '.join(missing)}: executions stay queued until one does."
        if len(self._warnings) > MOST_CACHED:
            self._warnings.clear()
        self._warnings[needs] = (now + UNMET_FOR, warning) if missing else (now + MET_FOR, None)
        return warning if missing else None

    async def offers(self, namespace: int) -> Sequence[Offer]:
        """Return the offer of each live worker."""
        begun = self._env.clock.monotonic()
        until, offers = self._known.get(namespace, (begun, ()))
        if begun < until:
            return offers
        offers = await self._store.read(lambda: reads.offers(namespace))
        ended = self._env.clock.monotonic()
        self._known[namespace] = ended + FRESH * (ended - begun), offers
        return offers


def able_offers(offers: Iterable[Offer], queue: str, terms: Requirements) -> Iterator[Offer]:
    """Return the offers of workers that could take executions of a queue with these requirements."""
    return (offer for offer in offers if queue in offer.queues and fits(terms, offer.capabilities))
