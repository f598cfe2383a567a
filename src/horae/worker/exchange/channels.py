"""The numbered channels of a session, each with at most one unanswered exchange."""

from collections.abc import Iterator

from horae.model.fleet.protocol import CHANNELS, Exchange

# Exchanges in flight at once: polls, which wait for work, and carriers, which are answered at once.
POLLS, CARRIERS = 2, 2


class ExchangeChannel:
    """One numbered channel to the servers, with its unanswered exchange."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.n = 0
        self.exchange: Exchange | None = None

    @property
    def answered(self) -> int:
        """Return the number of the last answered exchange."""
        return self.n if self.exchange is None else self.n - 1


class Channels:
    """The channels that a worker uses."""

    def __init__(self) -> None:
        self._channels = [ExchangeChannel(number) for number in range(POLLS + CARRIERS)]

    def __getitem__(self, number: int) -> ExchangeChannel:
        return self._channels[number]

    def __iter__(self) -> Iterator[ExchangeChannel]:
        return iter(self._channels)

    def idle(self) -> ExchangeChannel | None:
        """Return a channel without an unanswered exchange."""
        return next((channel for channel in self._channels if channel.exchange is None), None)

    def unanswered(self) -> list[Exchange]:
        """Return the exchanges to repeat until they are answered."""
        return [channel.exchange for channel in self._channels if channel.exchange is not None]

    def answered(self) -> list[int]:
        """Return the number of the last answered exchange of every channel of the protocol."""
        return [channel.answered for channel in self._channels] + [0] * (CHANNELS - len(self._channels))
