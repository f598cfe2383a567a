"""The steps of an order and their undo functions; the order itself, Step Functions' saga, is in order_saga.yaml.

Everything is written into one book, each entry once: if a worker crashed, its step may run again, and finds its entry.
An undo may even run for a step that did not run.
"""

import sqlite3
from contextlib import closing

from horae import App, GiveUp

app = App("order-saga")


@app.job("reserve-stock")
def reserve(order: int, item: str) -> None:
    """Reserve an item."""
    write(order, f"reserved {item}")


@app.job("release-stock", retries=10)
def release(order: int, item: str) -> None:
    """Release the item."""
    write(order, f"released {item}")


@app.job("charge-card")
def charge(order: int, amount: float) -> dict[str, str]:
    """Charge the card."""
    write(order, f"charged {amount}")
    return {"payment": f"payment-{order}"}


@app.job("refund-card", retries=10)
def refund(order: int, payment: str) -> None:
    """Refund the payment."""
    write(order, f"refunded {payment}")


@app.job("ship-parcel")
def ship(order: int, address: str) -> dict[str, str]:
    """Hand the parcel to a carrier."""
    if "moon" in address:
        raise GiveUp(f"No carrier delivers to {address}.")
    write(order, f"shipped to {address}")
    return {"parcel": f"parcel-{order}"}


@app.job("recall-parcel", retries=10)
def recall(order: int, parcel: str) -> None:
    """Recall the parcel."""
    write(order, f"recalled {parcel}")


@app.job("send-mail")
def send_mail(order: int, to: str, text: str) -> None:
    """Notify the customer."""
    if "@" not in to:
        raise GiveUp(f"{to} is not an address.")
    write(order, f"mailed {text}")


def write(order: int, what: str, book: str = "orders.db") -> None:
    with closing(sqlite3.connect(book)) as database, database:
        database.execute("CREATE TABLE IF NOT EXISTS book (n INTEGER PRIMARY KEY, number, what, UNIQUE (number, what))")
        database.execute("INSERT OR IGNORE INTO book (number, what) VALUES (?, ?)", (order, what))
