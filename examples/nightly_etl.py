"""Nightly ETL: read yesterday's orders from a CSV file, clean them, load them into a warehouse.

Each stage is a remembered step: if loading fails, a retry does not read the file again. Loading replaces the day's rows
in one transaction, so running it twice changes nothing.
"""

import csv
import sqlite3
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from horae import App, Context, GiveUp, cron

app = App("nightly-etl")


@app.job(
    "nightly-etl",
    schedule=cron("0 2 * * *", tz="Europe/Paris"),
    retries=5,
    retry={"delay": "30s", "factor": 2, "max": "15m"},
    timeout="1h",
    tags={"team": "data"},
)
def nightly_etl(
    ctx: Context, day: date | None = None, source: str = "data", warehouse: str = "warehouse.db"
) -> dict[str, Any]:
    """Load one day's orders; by default, those of the day before the scheduled night."""
    day = day or ctx.scheduled_at.date() - timedelta(days=1)
    orders = ctx.sync.step("extract", extract, Path(source), day)
    ctx.progress(33, f"{len(orders)} orders read")
    kept, rejected = ctx.sync.step("transform", transform, orders)
    for order in rejected:
        ctx.log.warning("order %s has no quantity: %s", order["order"], order["quantity"])
    ctx.progress(66, f"{len(rejected)} orders rejected")
    load(Path(warehouse), day, kept)
    return {"day": day, "loaded": len(kept), "rejected": len(rejected)}


def extract(source: Path, day: date) -> list[dict[str, str]]:
    path = source / f"orders-{day}.csv"
    try:
        with path.open(newline="") as file:
            return list(csv.DictReader(file))
    except FileNotFoundError:
        raise GiveUp(f"There is no {path}.") from None  # a retry would not find it either


def transform(orders: list[dict[str, str]]) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """Return the orders with their amount, and the invalid ones."""
    good = [order for order in orders if order["quantity"].isdecimal()]
    bad = [order for order in orders if not order["quantity"].isdecimal()]
    return [{**order, "amount": int(order["quantity"]) * float(order["price"])} for order in good], bad


def load(warehouse: Path, day: date, orders: list[dict[str, Any]]) -> None:
    with closing(sqlite3.connect(warehouse)) as database, database:
        database.execute("CREATE TABLE IF NOT EXISTS orders (day, number, region, product, amount)")
        database.execute("DELETE FROM orders WHERE day = ?", [str(day)])
        rows = [(str(day), o["order"], o["region"], o["product"], o["amount"]) for o in orders]
        database.executemany("INSERT INTO orders VALUES (?, ?, ?, ?, ?)", rows)
