"""The fleet: what the live workers of a namespace offer, read now and then."""

from collections.abc import Iterable, Iterator, Sequence

from horae.env import Env
from horae.model.hint import Offer
from horae.model.placement import Terms, fits
from horae.store.contract import Store
from horae.store.moves import execution_reads as reads

FRESH = 20  # what was read is used for so many times as long as reading it took


class Fleet:
    """What live workers offer. A read costs what they are many, so a large fleet is read less often."""

    def __init__(self, env: Env, store: Store) -> None:
        self._env, self._store = env, store
        self._known: dict[int, tuple[float, Sequence[Offer]]] = {}

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


def able(offers: Iterable[Offer], queue: str, terms: Terms) -> Iterator[Offer]:
    """Those of these workers that could take what stands in such a lane of a queue."""
    return (offer for offer in offers if queue in offer.queues and fits(terms, offer.capabilities))
