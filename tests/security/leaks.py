"""Jobs that leak a secret in every possible way, and searches for it in everything they left."""

import base64
import json
import logging
import sys
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from horae.client.app import App
from horae.errors import HoraeError
from horae.worker.code.context import Context

CANARY = 'Cn4ry+/"q\\ %z&9=kXw'
LONG = 5000
app = App()


def said(value: str) -> Iterator[str]:
    """Return the ways in which code may write a value."""
    raw = value.encode()
    yield from (value, json.dumps(value), quote(value), quote(value, safe=""), quote_plus(value), repr(value))
    yield from (raw.hex(), raw.hex().upper(), repr(raw), json.dumps(json.dumps(value)))
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        for before in (b"", b"u", b"u:"):
            yield from (encode(before + raw).decode(), encode(before + raw + b"tail").decode())


def traces_of(value: str) -> Iterator[str]:
    """Return the traces of a value to search for, computed without code of the product."""
    raw = value.encode()
    yield from (value, json.dumps(value)[1:-1], quote(value), quote(value, safe=""), quote_plus(value))
    yield from (raw.hex(), raw.hex().upper())
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        for before in (b"", b"u", b"u:"):
            whole = encode(before + raw + b"tail").decode()
            yield whole[4 if before else 0 : 4 * ((len(before) + len(raw)) // 3)]


def found_in(data: bytes, value: str = CANARY) -> list[str]:
    """Return the traces of a value that occur."""
    return [trace for trace in traces_of(value) if trace.encode() in data]


def cut_in_the_middle(value: str) -> str:
    """Return a text that is shortened in the middle of the value, at both borders of the omitted part."""
    return "a" * 1015 + value + "b" * LONG + value + "c" * 3045


async def _tell(ctx: Context, value: str) -> None:
    for form in said(value):
        ctx.log("here: %s!", form)
        logging.getLogger("app").warning("there: %s", form)
        ctx.progress(10, f"at {form}")
    ctx.log("x" * (16 * 1024 - 7) + value + "\n" + value[:4] + value[4:])
    await ctx.artifact(f"{value.encode().hex()}.txt", b"a file")
    await ctx.step("look up", lambda: {"found": list(said(value)), value: 1})
    await ctx.step(f"named {value}", lambda: None)
    await ctx.checkpoint({"at": value})
    with pytest.raises(HoraeError, match="contains the value of a secret"):
        await ctx.submit("leak-async", {"how": value})


def _end(value: str, how: str) -> Any:
    if how == "fail":
        try:
            raise KeyError(value)
        except KeyError as error:
            raise ValueError(cut_in_the_middle(value)) from error
    if how == "class":
        raise type(f"Error{value.encode().hex()}", (Exception,), {})(f"no {value}")
    if how == "large":
        return [value] * LONG
    return {"all": list(said(value)), value: {"n": [1, value]}, "whole": json.dumps({"v": value})}


@app.job("leak-async", secrets=["canary"])
async def leak_async(ctx: Context, how: str = "") -> Any:
    value = ctx.secret("canary")
    await _tell(ctx, value)
    return _end(value, how)


def _sync(ctx: Context, how: str) -> Any:
    value = ctx.secret("secret://canary")
    ctx.log("in a thread: %s", value)
    ctx.sync.step("look up", lambda: value)
    ctx.sync.artifact(f"{value.encode().hex()}.bin", b"a file")
    teller = threading.Thread(target=ctx.log.warning, args=(f"from another thread: {value}",))
    teller.start()
    teller.join()
    return _end(value, how)


@app.job("leak-thread", secrets=["canary"])
def leak_thread(ctx: Context, how: str = "") -> Any:
    return _sync(ctx, how)


@app.job("leak-process", secrets=["canary"], isolation="process")
def leak_process(ctx: Context, how: str = "") -> Any:
    value = ctx.secret("canary")
    for at in range(len(value)):
        for piece in (value[:at], value[at:], " "):
            sys.stdout.write(piece)
            sys.stdout.flush()
    for form in said(value):
        print(form, file=sys.stderr)
    return _sync(ctx, how)


# Uses of the environment by a command.
SCRIPT = """
import base64, json, os, sys
value = os.environ["TOKEN"]
print(dict(os.environ))
for at in range(len(value)):
    for piece in (value[:at], value[at:], "\\n"):
        os.write(1, piece.encode())
os.write(2, b"x" * (16 * 1024 - 9) + value.encode() + b"y" * 40)
for form in (value.encode().hex(), base64.b64encode(value.encode()).decode(), json.dumps(value), repr(value)):
    print(form, file=sys.stderr)
with open(os.environ["HORAE_OUTPUT"], "w") as out:
    for told in ({"progress": 7, "message": value}, {"checkpoint": [value]}, {"result": {"v": value, value: value}}):
        print(json.dumps(told), file=out)
    print("broken " + "z" * 180 + value, file=out)
open(os.path.join(os.environ["HORAE_ARTIFACTS"], value.encode().hex()), "w").write("a file")
print("last words", value, file=sys.stderr)
sys.exit(int(sys.argv[1]))
"""
