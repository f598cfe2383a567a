"""The error of senders."""


class Undeliverable(Exception):
    """A notice was not delivered. `final`: another try would not help."""

    def __init__(self, why: str, *, final: bool = False) -> None:
        super().__init__(why)
        self.final = final
