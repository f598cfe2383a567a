"""Airflow's tutorial as a workflow: extract a day's orders, sum them up, load the sum.

The function under `@app.workflow` runs once, when this module is loaded: its calls become steps, and their arguments
define the order of the steps. Each step is an execution with its own attempts, log and result.
"""

import json

from horae import App, current

app = App("tutorial")


@app.job("tutorial-extract", retries=2)
def extract() -> dict[str, float]:
    """Read the orders: their numbers and values."""
    orders: dict[str, float] = json.loads('{"1001": 301.27, "1002": 433.21, "1003": 502.22}')
    return orders


@app.job("tutorial-transform")
def transform(orders: dict[str, float]) -> dict[str, float]:
    """Return the sum of the orders."""
    return {"total": round(sum(orders.values()), 2)}


@app.job("tutorial-load", retries=2)
def load(total: float) -> None:
    """Log the sum; a real job would write it to a warehouse."""
    current().log("Total order value is: %.2f", total)


@app.workflow("tutorial-etl", tags={"team": "data"})
def tutorial_etl() -> dict[str, float]:
    """Extract, transform, load."""
    orders = extract()
    summary = transform(orders)
    load(summary["total"])
    return summary
