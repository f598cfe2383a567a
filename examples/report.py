"""Business report: one execution per region, submitted by a scheduled job.

Submissions of a running execution are idempotent: if it is retried, it submits the same executions.
"""

import sqlite3
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from horae import App, Context, cron

app = App("report")

REGIONS = ("north", "south", "west")


@app.job("daily-report", schedule=cron("0 6 * * MON-SAT", tz="Europe/Paris"), retries=2)
async def daily_report(
    ctx: Context, day: date | None = None, warehouse: str = "warehouse.db", folder: str = "reports"
) -> list[str]:
    """Submit the report of every region; the result lists their executions."""
    day = day or ctx.scheduled_at.date() - timedelta(days=1)
    params = [{"day": day, "region": region, "warehouse": warehouse, "folder": folder} for region in REGIONS]
    submitted = await ctx.submit_many(region_report, params, tags={"report": str(day)})
    return [str(one.execution_id) for one in submitted]


@app.job("region-report", retries=2, timeout="10m")
def region_report(ctx: Context, day: date, region: str, warehouse: str, folder: str) -> dict[str, Any]:
    """Write one region's report as a text file."""
    with closing(sqlite3.connect(f"file:{warehouse}?mode=ro", uri=True)) as database:
        rows = database.execute(
            "SELECT product, sum(amount) FROM orders WHERE day = ? AND region = ? GROUP BY product ORDER BY 2 DESC",
            [str(day), region],
        ).fetchall()
    path = Path(folder) / f"{day}-{region}.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"Sales of {day}, {region}", "", *(f"{product:<12} {amount:>10.2f}" for product, amount in rows)]
    path.write_text("\n".join(lines) + "\n")
    ctx.log("wrote %s", path)
    return {"file": str(path), "total": round(sum(amount for _, amount in rows), 2)}
