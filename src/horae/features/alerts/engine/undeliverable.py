"""The error that senders raise."""


class Undeliverable(Exception):
    """A notice was not delivered. With `final`, another try would not help."""

    def __init__(self, why: str, *, final: bool = False) -> None:
        super().__init__(why)
        self.final = final
