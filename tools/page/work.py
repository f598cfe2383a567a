"""The job of the load, which does nothing."""

from horae import App

QUEUE = "load"

app = App()


@app.job("load", queue=QUEUE)
async def nothing() -> None:
    """Do nothing."""
