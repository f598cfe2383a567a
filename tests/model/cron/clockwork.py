"""Properties at every clock change of every zone, 1970 to 2037, checked one by one."""

from itertools import pairwise, product

from horae.env import SECOND
from horae.model.triggers.cron.fire import last_before, next_after
from horae.model.triggers.cron.parse import parse_cron
from horae.model.triggers.cron.wall import CronExpression
from horae.model.triggers.cron.zone import BUCKET_BITS, spans
from tests.model.cron import vixie
from tests.model.cron.differences import Verdict, one_with_vixie
from tests.model.zones import YEAR_2038, all_zones, changes, rules_of

HOURS = 5  # before and after a change
SHARED = (  # with Vixie
    "*/7 * * * *",
    "0 * * * *",
    "30 1 * * *",
    "30 2 * * *",
    "0,30 0-3 * * *",
    "0 */2 * * *",
    "15,45 0,22,23 * * *",
    "0 0 * * 0",
    "0 12 13 * 5",
    "10,40 */3 30 1,12 *",
)
OTHERS = ("59 23 L * *", "0 0 15W * *", "*/600 */20 * * * *", "30 45 2 * * *")
CHOSEN = ("30 0-3 * * *", "0,20,40 23 * * *")  # under every policy
GAPS, OVERLAPS = ("shift", "skip"), ("first", "second", "both")


def distinct_zones() -> dict[str, list[str]]:
    """Return one zone per set of rules, with all its names."""
    names: dict[bytes, list[str]] = {}
    for name in all_zones():
        names.setdefault(rules_of(name), []).append(name)
    return {each[0]: each for each in names.values()}


def look_at_zone(name: str, every: int = 1) -> tuple[int, Verdict]:
    """Check all or every nth change of a zone; return their number and the differences from Vixie."""
    assert boundaries(name) == changes(name), f"{name}: the spans do not know its changes"
    looked, verdict = changes(name)[::every], Verdict()
    for second, _, _ in looked:
        look_at_change(name, second, verdict)
    return len(looked), verdict


def look_at_change(name: str, second: int, verdict: Verdict) -> None:
    """Check one change: each expression under the default policies and some under all, and each against Vixie."""
    start, end = second - HOURS * 3600, second + HOURS * 3600
    loop = vixie.Starts(name, start - 2 * 3600, end + 1)
    for text in SHARED:
        if start > 86_400:
            one_with_vixie(verdict, text, name, start, end, loop)
    for text in (*SHARED, *OTHERS):
        agree(parse_cron(text), name, start, end)
    for text, gap, overlap in product(CHOSEN, GAPS, OVERLAPS):
        agree(parse_cron(text), name, start, end, gap, overlap)
    for at in (second * SECOND - 1, second * SECOND, second * SECOND + 1):
        for text in SHARED:
            neighbours(parse_cron(text), name, at)


def agree(x: CronExpression, name: str, start: int, end: int, gap: str = "shift", overlap: str = "first") -> None:
    """Check that forward and backward searches list the same instants, each once, in order, and end."""
    forward, backward = [start * SECOND], [end * SECOND]
    while (at := next_after(x, name, forward[-1], gap, overlap)) is not None and at < end * SECOND:
        assert at > forward[-1], (x.text, name, at)
        forward.append(at)
    while (at := last_before(x, name, backward[-1], gap, overlap)) is not None and at > start * SECOND:
        assert at < backward[-1], (x.text, name, at)
        backward.append(at)
    assert forward[1:] == backward[:0:-1], (x.text, name, start, gap, overlap)


def neighbours(x: CronExpression, name: str, at: int) -> None:
    """prev(next(t)) <= t < next(t), and the other way round."""
    coming, past = next_after(x, name, at), last_before(x, name, at)
    assert past is not None
    assert coming is not None
    assert past < at < coming, (x.text, name, at)
    assert last_before(x, name, coming) <= at, (x.text, name, at)
    assert next_after(x, name, past) >= at, (x.text, name, at)


def boundaries(name: str) -> tuple[tuple[int, int, int], ...]:
    """Return every change of offset in the spans, 1970 to 2037."""
    known = [span for bucket in range((YEAR_2038 >> BUCKET_BITS) + 1) for span in spans(name, bucket)]
    assert all(one.end == two.start for one, two in pairwise(known))
    moved = [(two.start, one.offset, two.offset) for one, two in pairwise(known) if one.offset != two.offset]
    return tuple(each for each in moved if each[0] < YEAR_2038)
