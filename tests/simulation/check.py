"""Checks of the invariants I1 to I7 and I12, by rows of the store and by records of the observer."""

import itertools
from collections import Counter
from typing import Any
from uuid import UUID

import msgspec

from horae.model.base.ids import execution_id
from horae.model.executions.execution import FINAL
from horae.model.fleet.session import LIVE
from horae.store.script import Fetch, Rows, Statement
from horae.store.sqlite.memory import MemoryDriver
from tests.simulation.actors import Client, Observer, Worker
from tests.suspects import may_meet

SHELVES = ("waiting", "queued", "running", "history")


def rows(driver: MemoryDriver, sql: str) -> Rows:
    """Read rows without the driver's hooks."""
    return driver._connection.execute(Fetch(Statement("check", sql)))


class Checker:
    """A checker that remembers final states, to notice if they change."""

    def __init__(self, driver: MemoryDriver, observer: Observer) -> None:
        self.driver, self.observer = driver, observer
        self.final: dict[UUID, str] = {}

    def check(self, workers: list[Worker]) -> None:
        """Check everything that must hold between two transactions."""
        if self.driver._turn.locked():
            return
        states = self.states()
        self.check_final(states)
        self.check_owners()
        self.check_held(workers)
        self.check_suspects()
        self.check_fires()
        self.check_bounds()

    def check_bounds(self) -> None:
        """Check that each live execution with a timeout has a row in `timeouts`."""
        live = " OR ".join(f"EXISTS (SELECT 1 FROM {shelf} s WHERE s.parcel = p.id)" for shelf in SHELVES[:3])
        sql = (
            "SELECT p.id FROM parcels p JOIN jobs j ON j.id = p.job WHERE j.name = 'hasty'"
            f" AND p.id NOT IN (SELECT parcel FROM timeouts) AND ({live})"
        )
        assert not rows(self.driver, sql), "a timeout is forgotten"

    def states(self) -> dict[UUID, str]:
        """Check I2: each item of each parcel is on exactly one shelf; return their states."""
        found: Counter[UUID] = Counter()
        states: dict[UUID, str] = {}
        for shelf in SHELVES:
            word = "state" if shelf == "history" else f"'{shelf}'"
            for parcel, lo, hi, state in rows(self.driver, f"SELECT parcel, lo, hi, {word} FROM {shelf}"):
                for item in range(lo, hi):
                    found[execution_id(parcel, item)] += 1
                    states[execution_id(parcel, item)] = state
        expected = {
            execution_id(parcel, item)
            for parcel, n in rows(self.driver, "SELECT id, n FROM parcels")
            for item in range(n)
        }
        doubled = [id for id, count in found.items() if count > 1]
        assert not doubled, f"I2: on two shelves: {doubled[:3]}"
        assert found.keys() == expected, f"I2: lost {list(expected - found.keys())[:3]}"
        return states

    def check_final(self, states: dict[UUID, str]) -> None:
        """Check I7 and I3: a final state does not change."""
        for id, state in self.final.items():
            assert states[id] == state, f"I3: {id} was {state} and is {states[id]}"
        self.final |= {id: state for id, state in states.items() if state in FINAL}

    def check_owners(self) -> None:
        """Check I6: each waiting slice has a timer or a gate, and each running slice a known session."""
        bare = rows(self.driver, "SELECT parcel, lo FROM waiting WHERE wake_at IS NULL AND gate IS NULL")
        assert not bare, f"I6: waits for nothing: {bare[:3]}"
        orphans = rows(self.driver, "SELECT parcel, lo FROM running WHERE session NOT IN (SELECT id FROM sessions)")
        assert not orphans, f"I6: runs nowhere: {orphans[:3]}"

    def check_held(self, workers: list[Worker]) -> None:
        """Check I12: each running slice of a live session is held by its worker, or the worker awaits its answer."""
        sessions = {worker.session.id: worker.session for worker in workers if worker.session and worker.alive}
        sql = "SELECT r.parcel, r.lo, r.hi, r.attempt, r.session, r.channel, r.n, s.state FROM running r"
        for parcel, lo, hi, attempt, id, channel, n, state in rows(
            self.driver, f"{sql} JOIN sessions s ON s.id = r.session"
        ):
            session = sessions.get(id)
            if session is None or session.ended or state not in LIVE:
                continue
            awaited = any(e.channel == channel and e.n == n for e in session.unanswered())
            for item in range(lo, hi):
                assert awaited or session.holds(parcel, item, attempt), f"I12: {parcel}[{item}] of {id} is stranded"

    def check_suspects(self) -> None:
        """Check that no session holds more suspects than it may, because one of them may kill the others."""
        held: dict[tuple[UUID, int], list[int]] = {}
        sql = "SELECT r.session, s.concurrency, r.losses, r.hi - r.lo AS items FROM running r JOIN sessions s"
        for session, slots, losses, items in rows(self.driver, f"{sql} ON s.id = r.session"):
            held.setdefault((session, slots), []).extend([losses] * items)
        crowded = [session for (session, slots), losses in held.items() if not may_meet(losses, slots)]
        assert not crowded, f"suspects: more than they may hold in {crowded[:3]}"

    def check_fires(self) -> None:
        """Check I1: one execution per nominal fire."""
        executions = [row[0] for row in rows(self.driver, "SELECT execution FROM fires WHERE disposition = 'fired'")]
        assert len(executions) == len(set(executions)), "I1: two fires share an execution"
        fired = 0
        for n, extras in rows(self.driver, "SELECT n, extras FROM parcels WHERE extras IS NOT NULL"):
            decoded: Any = msgspec.json.decode(extras)
            each = decoded if isinstance(decoded, list) else [decoded] * n
            fired += sum(extra.get("origin") == "fire" for extra in each)
        assert fired == len(executions), f"I1: {fired} executions for {len(executions)} fires"

    def check_end(self, clients: list[Client]) -> None:
        """Check after healing that acknowledged executions ended as their params define, and no attempt began twice."""
        results = self._results()
        for client in clients:
            for id, params in client.acknowledged.items():
                state, result, attempt, reason = results[id]
                self._check_outcome(id, params, state, result, attempt, reason, id in client.cancelled)
        begun = Counter((b.execution, b.attempt) for b in self.observer.begun)
        twice = [key for key, count in begun.items() if count > 1]
        assert not twice, f"I3: begun twice: {twice[:3]}"
        self._check_overlap()
        sessions = {b.execution for b in self.observer.begun}
        assert sessions <= results.keys(), "I4: a run without an execution"

    def check_dependents(self) -> None:
        """Check that each end started its dependent once, or once per interval."""
        ends = {name: self._ends(name) for name in ("solid", "after", "tick", "each", "last")}
        if not ends["after"]:
            return
        started = Counter(id for _, extra in ends["after"].values() for id in extra.get("upstream", ()))
        assert set(started) == {str(id) for id in ends["solid"]}, "an end was not told to who depends on it"
        assert set(started.values()) == {1}, "an end started its dependent twice"
        for upstream, dependent in (("tick", "each"), ("each", "last")):
            met = {tuple(extra["interval"]) for state, extra in ends[upstream].values() if state == "success"}
            ran = Counter(tuple(extra["interval"]) for state, extra in ends[dependent].values() if state != "skipped")
            assert set(ran) == met, f"{dependent} did not follow every interval of {upstream}"
            assert set(ran.values()) <= {1}, f"{dependent} ran twice for an interval"

    def _ends(self, job: str) -> dict[UUID, tuple[str, dict[str, Any]]]:
        """Return the final states and extras of a job's executions."""
        found = {}
        sql = (
            "SELECT h.parcel, h.lo, h.hi, h.state, p.extras, p.n FROM history h JOIN parcels p ON p.id = h.parcel"
            f" JOIN jobs j ON j.id = h.job WHERE j.name = '{job}'"
        )
        for parcel, lo, hi, state, extras, n in rows(self.driver, sql):
            decoded: Any = msgspec.json.decode(extras) if extras else {}
            each = decoded if isinstance(decoded, list) else [decoded] * n
            found |= {execution_id(parcel, item): (state, each[item]) for item in range(lo, hi)}
        return found

    def _check_outcome(
        self, id: UUID, params: dict[str, int], state: str, result: Any, attempt: int, reason: str, cancelled: bool
    ) -> None:
        if state == "cancelled":
            assert cancelled, f"{id} was cancelled by nobody"
        elif state == "success":
            assert result == {"i": params["i"], "attempt": attempt}, f"I3: {id} took {result} at attempt {attempt}"
            assert params["fail"] <= 2, f"{id} succeeded though it always fails"
        else:
            expected = {"retries"} if params["fail"] > 2 else {"poison"}
            expected |= {"poison", *(("queueTimeout", "totalTimeout") if id in self._hasty() else ())}
            assert (state, reason) in {("failed", word) for word in expected}, f"{id}: {state} ({reason})"

    def _hasty(self) -> set[UUID]:
        """Return the executions that may exceed a timeout."""
        sql = "SELECT p.id, p.n FROM parcels p JOIN jobs j ON j.id = p.job WHERE j.name = 'hasty'"
        return {execution_id(id, item) for id, n in rows(self.driver, sql) for item in range(n)}

    def _results(self) -> dict[UUID, tuple[str, Any, int, str]]:
        from horae.model.base.packing import Packed

        found = {}
        columns = "parcel, lo, hi, state, ends, results, attempt, reason"
        for parcel, lo, hi, state, ends, blob, attempt, reason in rows(self.driver, f"SELECT {columns} FROM history"):
            parts = Packed(ends or b"", blob).part(0, hi - lo) if blob is not None else [b"null"] * (hi - lo)
            for item in range(lo, hi):
                found[execution_id(parcel, item)] = (state, msgspec.json.decode(parts[item - lo]), attempt, reason)
        return found

    def _check_overlap(self) -> None:
        """Check DUP_EXEC: two attempts overlap only if the earlier session had ended before the later one began."""
        ended = dict(rows(self.driver, "SELECT id, ended_at FROM sessions"))
        by_execution: dict[UUID, list[Any]] = {}
        for begin in self.observer.begun:
            by_execution.setdefault(begin.execution, []).append(begin)
        for begins in by_execution.values():
            for earlier, later in itertools.pairwise(begins):
                assert later.attempt > earlier.attempt, f"I3: attempts of {earlier.execution} go backwards"
                over = self.observer.ended.get((earlier.execution, earlier.attempt))
                expired = ended.get(earlier.session)
                done = over is not None and over <= later.at
                assert done or (expired is not None and expired <= later.at), f"DUP_EXEC: {earlier} and {later}"


def all_final(driver: MemoryDriver) -> bool:
    return not any(rows(driver, f"SELECT 1 FROM {shelf} LIMIT 1") for shelf in SHELVES[:3])
