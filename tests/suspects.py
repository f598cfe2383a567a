"""Which suspects a session may hold together."""

from collections.abc import Collection

from horae.model.fleet.suspects import is_suspect, most_suspects


def may_meet(losses: Collection[int], slots: int) -> bool:
    """Whether a session of so many slots may hold executions that were lost so often."""
    suspects = [each for each in losses if is_suspect(each)]
    return not suspects or len(suspects) <= most_suspects(max(suspects), slots)
