"""A Celery app with tasks that submit jobs; its broker is a folder."""

import os
from pathlib import Path

from celery import Celery
from shop import both

folder = Path(os.environ["FOLDER"])
for name in ("queue", "control", "results"):
    (folder / name).mkdir(exist_ok=True)
application = Celery("proof", broker="filesystem://", backend=f"file://{folder / 'results'}")
application.conf.broker_transport_options = {
    **dict.fromkeys(("data_folder_in", "data_folder_out"), str(folder / "queue")),
    "control_folder": str(folder / "control"),
}


@application.task(name="submit")
def submit(to: str) -> str:
    return both(to)
