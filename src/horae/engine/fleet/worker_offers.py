"""The fleet: what the live workers of a namespace offer, read now and then."""

from collections.abc import Iterable, Iterator, Sequence

from horae.env import Env
from horae.model.admission.placement.placement import Cost, Requirements, fits, missing_from
from horae.model.definitions.job import Spec
from horae.model.executions.hint import Offer
from horae.store.contract import Store
from horae.store.executions.reads import execution_reads as reads

MET_FOR, UNMET_FOR = 60.0, 5.0  # seconds for which nobody looks again whether needs were ever met
MOST_TOLD = 10_000
FRESH = 20  # what was read is used for so many times as long as reading it took


class WorkerOffers:
    """What live workers offer. A read costs what they are many, so a large fleet is read less often."""

    def __init__(self, env: Env, store: Store) -> None:
        self._env, self._store = env, store
        self._known: dict[int, tuple[float, Sequence[Offer]]] = {}
        self._told: dict[tuple[int, tuple[str, ...], Cost], tuple[float, str | None]] = {}  # until when, what of needs

    async def warning(self, namespace: int, spec: Spec) -> str | None:
        """What to say of a job that needs what no worker ever had, as far as anybody remembers."""
        if not spec.needs and spec.slots == 1 and not spec.resources:
            return None
        asked, now = (namespace, spec.needs, spec.cost), self._env.clock.monotonic()
        until, said = self._told.get(asked, (now, None))
        if now < until:
            return said
        had = await self._store.read(lambda: reads.ever_offered(namespace))
        missing = missing_from(Requirements(must=frozenset(spec.needs), cost=spec.cost), had)
        said = f"No worker has ever had {' and '.join(missing)}: executions stay queued until one does."
        if len(self._told) > MOST_TOLD:
            self._told.clear()
        self._told[asked] = (now + UNMET_FOR, said) if missing else (now + MET_FOR, None)
        return said if missing else None

    async def offers(self, namespace: int) -> Sequence[Offer]:
        """What each live worker offers."""
        begun = self._env.clock.monotonic()
        until, offers = self._known.get(namespace, (begun, ()))
        if begun < until:
            return offers
        offers = await self._store.read(lambda: reads.offers(namespace))
        ended = self._env.clock.monotonic()
        self._known[namespace] = ended + FRESH * (ended - begun), offers
        return offers


def able(offers: Iterable[Offer], queue: str, terms: Requirements) -> Iterator[Offer]:
    """Those of these workers that could take what stands in such a lane of a queue."""
    return (offer for offer in offers if queue in offer.queues and fits(terms, offer.capabilities))
