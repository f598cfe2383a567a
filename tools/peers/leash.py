"""Processes that end with all their children, even if their starter is killed."""

import os
import signal
import subprocess
from contextlib import suppress
from typing import Any

# The keeper waits until the other end of its input is closed everywhere, then kills the process group.
KEEPER = 'cat >/dev/null; kill -s KILL -- "-$1" 2>/dev/null'


class TiedProcess:
    """A program in its own session, so that its children can be ended with it."""

    def __init__(self, command: list[Any], **options: Any) -> None:
        self.process: subprocess.Popen[str] = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, text=True, start_new_session=True, **options
        )
        theirs, self._leash = os.pipe()
        self._keeper = subprocess.Popen(
            ["sh", "-c", KEEPER, "keeper", str(self.process.pid)], stdin=theirs, start_new_session=True
        )
        os.close(theirs)

    def end(self) -> None:
        """Kill the program at once: its data is thrown away anyway."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self._leash)
        self._keeper.wait()
        if self.process.stdout:
            self.process.stdout.close()
