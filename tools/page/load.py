"""The load of the demo's server: executions that do nothing, at a rate, run by a separate worker."""

import threading

from tools.page.demo import Demo
from tools.page.work import QUEUE

APP = "tools.page.work:app"
BATCHES = 10  # submissions per second


class Load:
    """A load that submits executions at a rate until it is closed."""

    def __init__(self, demo: Demo, rate: int) -> None:
        self._demo, self._rate = demo, rate
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._submit, daemon=True)
        url = {"HORAE_URL": demo.url, "HORAE_KEY": demo.key}
        demo.run("apply", "--app", APP, **url).wait()
        self._worker = demo.run("worker", "--app", APP, "--queue", QUEUE, "--slots", "50", **url)
        self._thread.start()

    def _submit(self) -> None:
        items = [{"job": "load"}] * max(1, self._rate // BATCHES)
        while not self._over.wait(1 / BATCHES):
            self._demo.ask("/executions", {"items": items})

    @property
    def done(self) -> int:
        """The number of executions that succeeded in the last hour."""
        return int(self._demo.ask("/overview")["ended"]["success"])

    def close(self) -> None:
        self._over.set()
        self._thread.join()
        self._worker.terminate()
        self._worker.wait()
