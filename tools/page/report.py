"""The page with the measurements."""

from msgspec import Struct

from tools.page.measure import Cost, PageLoad

PAINT, SIZE, SHARE = 1000, 300_000, 0.05  # targets: ms, bytes, share of a core


class View(Struct, frozen=True):
    """A view: its opening, and its cost by the activity beside it."""

    name: str
    opened: PageLoad
    costs: dict[str, Cost]


class Circumstances(Struct, frozen=True):
    """The circumstances of the measurement."""

    command: str
    commit: str
    date: str
    machine: str
    seconds: float
    idle: dict[str, float]  # the server's usage without any page, by the activity beside
    rate: float  # executions per second that ran under load


HEAD = """# Pages: results

Written by a command, not by hand. Every page of the UI is opened in a real browser without a cache, beside a living
demo. *First paint* is the browser's own, *there* is when the page shows its data. What it costs is counted while it is
open and seen: of all processes of the browser (without a graphics card: what is drawn is drawn by the processor), and
of the server, beyond what it takes when nobody looks. Asked are under 1 s, under 300 kB and under 5% of a core.
"""


def text(views: list[View], around: Circumstances) -> str:
    """Return the whole page."""
    alone = ", ".join(f"{share:.1%} of a core beside the {one}" for one, share in around.idle.items())
    facts = [
        f"**{_verdict(views)}**",
        f"Command: `{around.command}`",
        f"Commit: {around.commit}",
        f"Date: {around.date}",
        f"Machine: {around.machine}",
        f"Each page was open for {around.seconds:g} s beside each; the load did {around.rate:.0f} executions/s",
        f"The server without any page: {alone}",
    ]
    besides = list(around.idle)
    head = "| page | first paint | there | transferred |" + "".join(
        f" browser, beside the {one} | server |" for one in besides
    )
    rows = [head, "|---|" + "---:|" * (3 + 2 * len(besides)), *(_row(view, besides) for view in views)]
    return "\n".join([HEAD, *(f"- {fact}" for fact in facts), "", *rows, ""])


def _row(view: View, besides: list[str]) -> str:
    came = view.opened
    cells = [view.name, f"{came.painted:.0f} ms", f"{came.there:.0f} ms", f"{came.transferred / 1000:.0f} kB"]
    for beside in besides:
        spent = view.costs[beside]
        cells += [f"{spent.browser:.1%}", f"{spent.server:.1%}"]
    return f"| {' | '.join(cells)} |"


def misses(views: list[View]) -> list[str]:
    """Return the missed targets."""
    found = []
    for view in views:
        if view.opened.painted >= PAINT:
            found.append(f"{view.name} paints after {view.opened.painted:.0f} ms")
        if view.opened.transferred >= SIZE:
            found.append(f"{view.name} takes {view.opened.transferred / 1000:.0f} kB")
        for beside, spent in view.costs.items():
            if (share := spent.browser + spent.server) >= SHARE:
                found.append(f"{view.name} takes {share:.1%} beside the {beside}")
    return found


def _verdict(views: list[View]) -> str:
    found = misses(views)
    return f"{len(views)} pages, all as asked" if not found else f"{len(views)} pages; {'; '.join(found)}"
