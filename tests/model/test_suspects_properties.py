"""Suspects: a session holds them in halves, a poison ends soon, and its neighbours never end as poison."""

from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from horae.model.definitions.retry import LOST, NoRetry
from horae.model.fleet.suspects import SUSPECT, Loss, SessionSuspects, after_loss, is_suspect, most_suspects, tries
from tests.suspects import may_meet

slots = st.integers(0, 200)


@given(slots, st.lists(st.tuples(st.integers(1, 12), st.integers(0, 9)), max_size=12))
def test_a_session_never_holds_too_many_suspects(slots, offers):
    company, held = SessionSuspects(slots=slots), []
    for losses, count in offers:
        if is_suspect(losses):
            taken = min(count, company.room(losses))
            company = company.joined(losses, taken) if taken else company
            held += [losses] * taken
        assert may_meet(held, slots)


@given(slots, st.integers(SUSPECT, 40))
def test_each_loss_halves_the_room_down_to_one(slots, losses):
    assert most_suspects(SUSPECT, slots) == max(1, slots // 2)
    assert most_suspects(losses + 1, slots) == max(1, most_suspects(losses, slots) // 2)
    assert SessionSuspects(slots=slots).room(losses) >= 1


@given(slots)
def test_an_execution_ends_as_poison_only_after_running_as_the_only_suspect(slots):
    """At the loss that ends it, and at the two losses before, it is the only suspect."""
    last = tries(slots)
    assert after_loss(last, 0, False, Loss(slots=slots, alone=False)) is None
    assert after_loss(last + 1, 0, False, Loss(slots=slots, alone=False)) == NoRetry("poison")
    assert slots == 1 or all(most_suspects(losses, slots) == 1 for losses in (last - 1, last))


@given(slots)
def test_three_losses_alone_are_enough(slots):
    assert after_loss(3, 3, False, Loss(slots=slots)) == NoRetry("poison")
    assert after_loss(2, 2, False, Loss(slots=slots)) is None


@given(st.integers(1, 99), st.integers(0, 99), slots, st.booleans())
def test_at_most_once_and_the_jobs_own_bound_are_respected(losses, said, slots, alone):
    loss = Loss(slots=slots, alone=alone, tries=said)
    assert after_loss(losses, losses, True, loss) == NoRetry("delivery")
    assert after_loss(losses, losses, False, loss) == (NoRetry("poison") if losses > said else None)


class Trial:
    """Sessions with a number of slots, one after another, that run a queue; some executions kill their session."""

    def __init__(self, count: int, poisons: set[int], slots: int, early: bool, rng: Random) -> None:
        self.queue = list(range(count))
        self.poisons, self.slots, self.early, self.rng = poisons, slots, early, rng
        self.losses: Counter[int] = Counter()
        self.alone: Counter[int] = Counter()
        self.finished: set[int] = set()
        self.quarantined: set[int] = set()
        self.deaths = self.rounds = 0

    def run(self) -> None:
        while self.queue:
            self.rounds += 1
            held = self._claim()
            if self.poisons & held:
                self._die(held)
            else:
                self.finished |= held
                self.queue = [item for item in self.queue if item not in held]

    def _claim(self) -> set[int]:
        """Fill the slots in the order of the queue, and skip suspects without room."""
        company, held = SessionSuspects(slots=self.slots), set()
        for item in self.queue:
            losses = self.losses[item]
            if len(held) == self.slots:
                break
            if not is_suspect(losses):
                held.add(item)
            elif company.room(losses):
                company = company.joined(losses, 1)
                held.add(item)
        return held

    def _die(self, held: set[int]) -> None:
        """Lose the session with all its executions if it is early, else with the unfinished ones."""
        self.deaths += 1
        if not self.early:
            done = {item for item in held - self.poisons if self.rng.random() < 0.5}
            self.finished |= done
            self.queue = [item for item in self.queue if item not in done]
            held -= done
        for item in held:
            self.losses[item] += 1
            self.alone[item] += len(held) == 1
            loss = Loss(slots=self.slots, alone=len(held) == 1)
            if after_loss(self.losses[item], self.alone[item], False, loss):
                self.quarantined.add(item)
                self.queue.remove(item)


@given(st.integers(1, 60), st.integers(1, 40), st.booleans(), st.randoms(use_true_random=False), st.data())
def test_one_poison_ends_soon_and_no_innocent_execution_does(count, slots, early, rng, data):
    poison = data.draw(st.integers(0, count - 1))
    trial = Trial(count, {poison}, slots, early, rng)
    trial.run()

    assert trial.quarantined == {poison}
    assert trial.finished == set(range(count)) - {poison}
    assert LOST + 1 <= trial.deaths <= tries(slots) + 1
    assert trial.rounds <= trial.deaths + count


@given(st.integers(2, 60), st.integers(1, 40), st.booleans(), st.randoms(use_true_random=False), st.data())
def test_several_poisons_end_soon_and_innocents_are_lost_less_often(count, slots, early, rng, data):
    poisons = data.draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=4))
    trial = Trial(count, poisons, slots, early, rng)
    trial.run()

    assert poisons <= trial.quarantined
    assert trial.deaths <= len(poisons) * (tries(slots) + 1)
    if len(poisons) <= 3:
        assert trial.quarantined == poisons


def test_one_poison_among_a_thousand_kills_at_most_fifteen_workers():
    trial = Trial(1000, {500}, 1000, True, Random(1))
    trial.run()

    assert trial.quarantined == {500}
    assert trial.deaths <= 15
    assert max(losses for item, losses in trial.losses.items() if item != 500) <= 11
