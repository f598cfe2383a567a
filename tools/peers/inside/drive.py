"""Run in a peer's environment beside its `app.py`, and print one line of JSON with the durations.

    drive.py prepare                 create the peer's tables, if it has any
    drive.py bulk COUNT              submit with the peer's bulk call
    drive.py singles COUNT CLIENTS   submit one by one
    drive.py drain COUNT             wait for a worker's first job, and measure the time until the last one is stored

`app` has `bulk(count)` and `singles(count, clients)`, which may be coroutine functions; `left(count)`, which returns
the number of unfinished jobs in the store; and `prepare()`. It omits functions that it does not need.
"""

import asyncio
import inspect
import json
import sys
import time

import app
import tally

LOOK = 0.002  # seconds between checks


def run(name: str, *arguments: int) -> float:
    """Call a function of `app`, if it exists; return the seconds it took."""
    called = getattr(app, name, None)
    begun = time.perf_counter()
    if called is not None:
        value = called(*arguments)
        if inspect.iscoroutine(value):
            _loop()(value)
    return time.perf_counter() - begun


def _loop():
    try:
        import uvloop
    except ImportError:
        return asyncio.run
    return uvloop.run


def drain(count: int) -> dict[str, float]:
    """Watch workers that are started after this prints "watching".

    Jobs that ran before the first check are not counted; timing starts there.
    """
    queued = app.left(count)
    if queued != count:
        raise SystemExit(f"{count} jobs were submitted, {queued} are queued.")
    print("watching", flush=True)
    while not (before := tally.count()):
        time.sleep(LOOK)
    begun = time.perf_counter()
    while tally.count() < count or app.left(count) > 0:
        time.sleep(LOOK)
    return {"jobs": count - before, "seconds": time.perf_counter() - begun, "ran": tally.count()}


def main(what: str, *numbers: str) -> None:
    arguments = tuple(map(int, numbers))
    told = drain(*arguments) if what == "drain" else {"seconds": run(what, *arguments)}
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
