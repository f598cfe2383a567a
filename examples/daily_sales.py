"""Nightly ETL with a history: each night's workflow handles its own day, and a backfill runs a week of missed days.

A fire has a data interval, from the previous fire to itself. The steps get that interval instead of reading a clock, so
the result of a day does not depend on the time of the run. Loading replaces the day's rows, so it can be repeated.
"""

import csv
import sqlite3
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

from horae import App, cron, step

app = App("daily-sales")


@app.job("sales-extract", retries=3, retry={"delay": "30s", "factor": 2})
def extract(since: datetime, until: datetime, source: str) -> list[dict[str, str]]:
    """Return the sales of an interval, including its start but not its end."""
    with Path(source).open(newline="") as file:
        return [row for row in csv.DictReader(file) if since <= datetime.fromisoformat(row["at"]) < until]


@app.job("sales-transform")
def transform(sales: list[dict[str, str]]) -> dict[str, float]:
    """Return their sums by region."""
    sums: dict[str, float] = {}
    for sale in sales:
        sums[sale["region"]] = round(sums.get(sale["region"], 0) + float(sale["amount"]), 2)
    return sums


@app.job("sales-load", retries=3)
def load(since: datetime, sums: dict[str, float], warehouse: str) -> int:
    """Replace the rows of that day in the warehouse."""
    day = str(since.date())
    with closing(sqlite3.connect(warehouse, timeout=30)) as database, database:
        database.execute("CREATE TABLE IF NOT EXISTS sales (day, region, total)")
        database.execute("DELETE FROM sales WHERE day = ?", [day])
        database.executemany("INSERT INTO sales VALUES (?, ?, ?)", [(day, *one) for one in sums.items()])
    return len(sums)


@app.workflow("daily-sales", schedule=cron("0 0 * * *"), timeout="2h", tags={"team": "data"})
def daily_sales(source: str = "data/sales.csv", warehouse: str = "sales.db") -> dict[str, Any]:
    """Load the day that ends, every midnight; on days without sales there is nothing to load."""
    interval = step.execution["interval"]
    sales = extract(interval["start"], interval["end"], source)
    sums = transform(sales)
    load.step(when=sums != {})(interval["start"], sums, warehouse)
    return {"day": interval["start"], "sums": sums}
