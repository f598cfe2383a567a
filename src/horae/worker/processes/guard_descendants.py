"""The descendants of children, including orphans, recognised by ancestry, session or a mark.

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

    def __init__(self, child_id: int, pid: int, mark: bytes) -> None:
        self.id = child_id
        self.pid = pid
        self.mark = mark  # the value of HORAE_GUARD in the environment of it and its descendants
        self.pidfd = pidfd_of(pid)
        self.may_finish = False  # whether it was asked to end: its processes may outlive it
        self.is_dead = False  # exited but not reaped, so that its pid still identifies its group
        self.watch: confined.FamilyWatch | None = None
        self.family: set[int] = set()  # pids of itself and its descendants at the last check of its limits
        self.exceeded: tuple[str, float] | None = None  # the exceeded limit


def pidfd_of(pid: int) -> int:
    """Return a descriptor that signals a process's death, or -1 if there is none."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return -1


class Descendants:
    """Finds, kills and reaps processes that children and their descendants have started."""

    def __init__(self, children: Mapping[int, GuardedChild]) -> None:
        """Take the guard's children, a mapping that changes."""
        self._children = children

    def adopted(self) -> list[Process]:
        """Return the living orphans that the guard has adopted: descendants of children whose parents have died."""
        known = {child.pid for child in self._children.values()}
        found = (process(pid) for pid in own_children() if pid not in known)
        return [one for one in found if one is not None and one.is_alive]

    def is_of(self, orphan: Process, child: GuardedChild) -> bool:
        """Return whether an orphan belongs to a child.

        It does if it was in the child's family at the last check, is in the child's group or session, or has the mark
        of the child in its environment. If there is only one child, all orphans belong to it.
        """
        if orphan.pid in child.family or child.pid in (orphan.group, orphan.session):
            return True
        return len(self._children) == 1 or mark_of(orphan.pid, MARK) == child.mark

    def kill_all_of(self, child: GuardedChild) -> None:
        """Kill a child and all its descendants, in rounds until none is found, because a process may fork meanwhile."""
        for _ in range(50):
            signal_group(child.pid, signal.SIGKILL)
            found = list(self.left_of(child))
            for pid in found:
                send_signal(pid, signal.SIGKILL)
            self.reap_adopted()  # otherwise the next round would check many dead processes again
            if not found:
                return

    def left_of(self, child: GuardedChild) -> Iterator[int]:
        """Yield the pids of a child's living processes, without the child itself.

        These are the processes of its group and session, its descendants, and processes with its mark.
        """
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
        """Kill the orphans that belong to a child. If there is no other child, kill all orphans."""
        known = {other.pid for other in self._children.values()}
        for pid in own_children():
            if pid not in known and (len(known) == 1 or pid in child.family or mark_of(pid, MARK) == child.mark):
                kill_tree(pid)

    def reap_adopted(self) -> None:
        """Reap adopted processes that have died."""
        if LINUX:
            known = {child.pid for child in self._children.values()}
            for pid in own_children():
                if pid not in known:
                    with contextlib.suppress(ChildProcessError):
                        os.waitpid(pid, os.WNOHANG)
