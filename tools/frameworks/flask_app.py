"""A Flask app: a blocking view and an asynchronous one."""

import os

from flask import Flask
from shop import both, send

application = Flask(__name__)


@application.get("/sync")
def blocking() -> str:
    return both("flask")


@application.get("/async")
async def asynchronous() -> str:
    return f"{os.getpid()} {(await send.submit(to='flask')).id}"
