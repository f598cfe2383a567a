"""Nightly ETL with a past: each night's workflow is about its own day, and a backfill runs a week that nobody ran.

A fire has a data interval, from the fire before it to itself. The steps are told that interval instead of looking at a
clock, so that a day comes out the same whenever it runs. Loading replaces the day's rows: it may be repeated.
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
    """The sales of an interval: its start belongs to it, its end to the next."""
    with Path(source).open(newline="") as file:
        return [row for row in csv.DictReader(file) if since <= datetime.fromisoformat(row["at"]) < until]


@app.job("sales-transform")
def transform(sales: list[dict[str, str]]) -> dict[str, float]:
    """Their sums by region."""
    sums: dict[str, float] = {}
    for sale in sales:
        sums[sale["region"]] = round(sums.get(sale["region"], 0) + float(sale["amount"]), 2)
    return sums


@app.job("sales-load", retries=3)
def load(since: datetime, sums: dict[str, float], warehouse: str) -> int:
    """Replace what the warehouse has of that day."""
    day = str(since.date())
    with closing(sqlite3.connect(warehouse, timeout=30)) as database, database:
        database.execute("CREATE TABLE IF NOT EXISTS sales (day, region, total)")
        database.execute("DELETE FROM sales WHERE day = ?", [day])
        database.executemany("INSERT INTO sales VALUES (?, ?, ?)", [(day, *one) for one in sums.items()])
    return len(sums)


@app.workflow("daily-sales", schedule=cron("0 0 * * *"), timeout="2h", tags={"team": "data"})
def daily_sales(source: str = "data/sales.csv", warehouse: str = "sales.db") -> dict[str, Any]:
    """Every midnight, load the day that ends; on days without sales there is nothing to load."""
    interval = step.execution["interval"]
    sales = extract(interval["start"], interval["end"], source)
    sums = transform(sales)
    load.step(when=sums != {})(interval["start"], sums, warehouse)
    return {"day": interval["start"], "sums": sums}
