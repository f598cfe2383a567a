"""Shared decisions equal the decisions made for each trigger on its own."""

from hypothesis import given
from hypothesis import strategies as st

from horae.env import SECOND
from horae.model.base.duration import DAY, HOUR, MINUTE
from horae.model.base.instant import parse_instant
from horae.model.triggers.decisions import shared_decisions as module
from horae.model.triggers.decisions.decide import decide
from horae.model.triggers.decisions.rules import Misfire, Rules
from horae.model.triggers.decisions.shared_decisions import SharedDecisions
from horae.model.triggers.decisions.values import Cron, Interval, Once

T0 = parse_instant("2026-11-01T03:00:00Z")  # New York sets its clocks back at 06:00
TRIGGERS = [
    Cron(expression="30 1 * * *", timezone="America/New_York"),
    Cron(expression="*/20 * * * *"),
    Interval(every=7 * MINUTE, anchor=T0),
    Once(at=T0 + HOUR),
]
RULES = [
    Rules(),
    Rules(overlap="allow", misfire=Misfire(policy="all", most=3)),
    Rules(start_at=T0 + 2 * HOUR, end_at=T0 + 8 * HOUR),
    Rules(max_fires=3),
    Rules(spread=HOUR, offset=10 * MINUTE),
    Rules(overlap="queueAll", most_queued=2),
]
ASKED = st.tuples(
    st.sampled_from(TRIGGERS), st.sampled_from(RULES), st.integers(-DAY, DAY), st.integers(0, 3), st.booleans()
)


@given(st.integers(0, DAY), st.lists(ASKED, min_size=1, max_size=60))
def test_shared_decisions_equal_separate_decisions(since, asked):
    now = T0 + since
    alike = SharedDecisions(now, 5)

    for trigger, rules, ago, fired, busy in asked:
        told = {"fired": fired, "busy": busy, "waiting": int(busy)}
        assert alike.decide(trigger, rules, now + ago, **told) == decide(trigger, rules, now + ago, now, 5, **told)


def test_a_thousand_triggers_due_for_one_fire_are_decided_once(monkeypatch):
    asked = []

    def counting(*args, **told):
        asked.append(args)
        return decide(*args, **told)

    monkeypatch.setattr(module, "decide", counting)
    alike, cron, rules = SharedDecisions(T0 + SECOND, 100), Cron(expression="0 3 * * *"), Rules()

    decisions = [alike.decide(cron, rules, T0 - 1 - i, fired=i, busy=False, waiting=0) for i in range(1_000)]

    assert len(asked) == 1
    assert {decision.fires[0].at for decision in decisions} == {T0}
