"""Runs in a peer's environment beside its `app.py`, and prints one line of JSON: what took how long.

    drive.py prepare                 make tables, where the peer has some
    drive.py bulk COUNT              submit by the peer's call for many
    drive.py singles COUNT CLIENTS   submit one by one
    drive.py drain COUNT             wait for a worker's first job, and time it until the last one is done and stored

`app` has `bulk(count)` and `singles(count, clients)`, coroutine functions or not; `left(count)`: how many of so many
jobs are not over yet, by the word of the store; and `prepare()`. What it has no use for it leaves out.
"""

import asyncio
import inspect
import json
import sys
import time

import app
import tally

LOOK = 0.002  # seconds between looks


def run(name: str, *arguments: int) -> float:
    """Call what `app` has under this name; the seconds it took."""
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
    """Watch a worker that is started once this says so. The jobs of the first look are not counted, only timed from."""
    queued = app.left(count)
    if queued != count:
        raise SystemExit(f"{count} jobs were submitted, {queued} are there.")
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
