"""Jobs that the frameworks' apps submit; the module is loaded before their servers fork, and submits one itself."""

import asyncio
import os

from horae import App

app = App()


@app.job
def send(to: str) -> str:
    return f"to {to}"


def both(to: str) -> str:
    """Submit once with a blocking call and once on a new event loop."""
    return f"{os.getpid()} {send.sync.submit(to=to).id} {asyncio.run(send.submit(to=to)).id}"


if os.environ.get("PRELOAD"):
    both("preload")
