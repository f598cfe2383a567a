"""Whether a lane is held, as a part of the statements that would give something of it out.

A hold that was acknowledged is kept by every server, without a statement more in a claim: the condition stands in the
statement that picks, which selects FOR KEY SHARE and so takes the table's lock before its snapshot. Whoever opens a
hold locks the table against that: claims under way end first, and the next ones see the hold.
"""


def held(lane: str, now: str) -> str:
    """A query that finds something while the queue of this lane, or its whole namespace, is held.

    What has `ended_at` holds nothing; before that a hold lasts, whatever a claiming server's clock says of its end.
    """
    return (
        "SELECT 1 FROM lanes l JOIN holds h ON h.namespace = l.namespace AND h.ended_at IS NULL"
        f" AND (h.queue IS NULL OR h.queue = l.queue) WHERE l.id = {lane} AND h.from_at <= {now} FOR KEY SHARE OF h"
    )
