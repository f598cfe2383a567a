"""What a sender raises when a notice did not reach anybody."""


class Undeliverable(Exception):
    """It was not delivered, and why; `final` says that another try is of no use."""

    def __init__(self, why: str, *, final: bool = False) -> None:
        super().__init__(why)
        self.final = final
