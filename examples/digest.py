"""Notification digest: every weekday at nine, one message to each user who has news.

The key of each message makes it unique for two days: another submission of it, by a retry, by hand or by another
schedule, returns the existing execution.
"""

import json
from datetime import date
from email.message import EmailMessage
from pathlib import Path

from horae import App, Context, cron

app = App("digest")


@app.job(schedule=cron("0 9 * * MON-FRI", tz="Europe/Paris"), retries=3, timeout="5m")
async def digest(ctx: Context, day: date | None = None, news: str = "data/news.json", outbox: str = "outbox") -> int:
    """Send a digest to each user with news; the result is their number."""
    day = day or ctx.scheduled_at.date()
    people: dict[str, list[str]] = json.loads(Path(news).read_text())
    told = {person: items for person, items in people.items() if items}
    for done, (person, items) in enumerate(told.items(), 1):
        params = {"person": person, "day": day, "items": items, "outbox": outbox}
        await ctx.submit(send, params, key=f"digest-{day}-{person}")
        ctx.progress(100 * done / len(told))
    return len(told)


@app.job("send-digest", retries=5, retry=["10s", "1m", "10m"], key_for="2d")
def send(person: str, day: date, items: list[str], outbox: str) -> str:
    """Write one message into the outbox; the file name is the same at every attempt, so the message is sent once."""
    message = EmailMessage()
    message["To"] = person
    message["Subject"] = f"{len(items)} news on {day}"
    message.set_content("\n".join(f"- {item}" for item in items))
    path = Path(outbox) / f"{day}-{person}.eml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(message))
    return path.name
