"""Whose a process is: what a child has started, also what was orphaned, told by ancestry, session or a mark.

The guard imports this without Horae's packages: only the standard library may be used here.
"""

import contextlib
import os
import signal
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING or __package__:
    from horae.worker.processes import confined
    from horae.worker.processes.processes import (
        LINUX,
        Process,
        all_processes,
        kill_tree,
        mark_of,
        own_children,
        process,
        send_signal,
        signal_group,
    )
else:
    import confined
    from processes import (
        LINUX,
        Process,
        all_processes,
        kill_tree,
        mark_of,
        own_children,
        process,
        send_signal,
        signal_group,
    )

MARK = b"HORAE_GUARD"


class GuardedChild:
    """A process started for the worker."""

    def __init__(self, id: int, pid: int, mark: bytes) -> None:
        self.id = id
        self.pid = pid
        self.mark = mark  # the value of HORAE_GUARD in the environment of it and its descendants
        self.pidfd = pidfd_of(pid)
        self.is_told = False  # to end: its processes may finish in peace
        self.is_dead = False  # but not reaped: its pid still names its group
        self.watch: confined.FamilyWatch | None = None
        self.family: set[int] = set()  # pids that were seen below it
        self.hit: tuple[str, float] | None = None  # the limit that it was over


def pidfd_of(pid: int) -> int:
    """A descriptor that tells of a process's death, or -1 where there is none to have."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return -1


class Descendants:
    """Finds, kills and buries what children and their descendants have started."""

    def __init__(self, children: Mapping[int, GuardedChild]) -> None:
        """`children` are those of the guard, as they come and go."""
        self._children = children

    def adopted(self) -> list[Process]:
        """What the children's descendants have orphaned."""
        known = {child.pid for child in self._children.values()}
        found = (process(pid) for pid in own_children() if pid not in known)
        return [one for one in found if one is not None and one.is_alive]

    def is_of(self, orphan: Process, child: GuardedChild) -> bool:
        """Whether an orphan belongs to a child: it was seen below it, is of its session, or carries its mark."""
        if orphan.pid in child.family or child.pid in (orphan.group, orphan.session):
            return True
        return len(self._children) == 1 or mark_of(orphan.pid, MARK) == child.mark

    def kill_all_of(self, child: GuardedChild) -> None:
        """Kill until nothing is found; something may be forking against it."""
        for _ in range(50):
            signal_group(child.pid, signal.SIGKILL)
            found = list(self.left_of(child))
            for pid in found:
                send_signal(pid, signal.SIGKILL)
            self.reap_adopted()  # the dead are many, and would have to be looked at again
            if not found:
                return

    def left_of(self, child: GuardedChild) -> Iterator[int]:
        """Living processes of a child but itself: its group and session, its descendants, and what carries its mark."""
        family = {child.pid}
        processes = sorted(all_processes(), key=lambda one: one.pid)
        for one in processes * 2:  # twice, for a parent with a higher pid than its child
            if one.pid in family or not one.is_alive:
                continue
            if one.parent in family or child.pid in (one.group, one.session) or self.is_adopted_of(one, child):
                family.add(one.pid)
                yield one.pid

    def is_adopted_of(self, one: Process, child: GuardedChild) -> bool:
        return one.parent == os.getpid() and (one.pid in child.family or mark_of(one.pid, MARK) == child.mark)

    def kill_orphans(self, child: GuardedChild) -> None:
        """Kill what descendants of a child left to the guard; with no other child alive, whoever they belong to."""
        known = {other.pid for other in self._children.values()}
        for pid in own_children():
            if pid not in known and (len(known) == 1 or pid in child.family or mark_of(pid, MARK) == child.mark):
                kill_tree(pid)

    def reap_adopted(self) -> None:
        """Bury adopted processes that have died."""
        if LINUX:
            known = {child.pid for child in self._children.values()}
            for pid in own_children():
                if pid not in known:
                    with contextlib.suppress(ChildProcessError):
                        os.waitpid(pid, os.WNOHANG)
