"""What the steps of an order do and undo; the order itself, Step Functions' saga, is in order_saga.yaml.

Everything is written into one book, each thing once: a step whose worker died may run again, and then finds that it is
there already. An undoing may even come for what was not done.
"""

import sqlite3
from contextlib import closing

from horae import App, GiveUp

app = App("order-saga")


@app.job("reserve-stock")
def reserve(order: int, item: str) -> None:
    """Take an item off the shelf."""
    write(order, f"reserved {item}")


@app.job("release-stock", retries=10)
def release(order: int, item: str) -> None:
    """Put it back."""
    write(order, f"released {item}")


@app.job("charge-card")
def charge(order: int, amount: float) -> dict[str, str]:
    """Take the money."""
    write(order, f"charged {amount}")
    return {"payment": f"payment-{order}"}


@app.job("refund-card", retries=10)
def refund(order: int, payment: str) -> None:
    """Give it back."""
    write(order, f"refunded {payment}")


@app.job("ship-parcel")
def ship(order: int, address: str) -> dict[str, str]:
    """Hand the parcel to somebody who delivers it."""
    if "moon" in address:
        raise GiveUp(f"Nobody delivers to {address}.")
    write(order, f"shipped to {address}")
    return {"parcel": f"parcel-{order}"}


@app.job("recall-parcel", retries=10)
def recall(order: int, parcel: str) -> None:
    """Have it brought back."""
    write(order, f"recalled {parcel}")


@app.job("send-mail")
def send_mail(order: int, to: str, text: str) -> None:
    """Tell the customer."""
    if "@" not in to:
        raise GiveUp(f"{to} is no address.")
    write(order, f"mailed {text}")


def write(order: int, what: str, book: str = "orders.db") -> None:
    with closing(sqlite3.connect(book)) as database, database:
        database.execute("CREATE TABLE IF NOT EXISTS book (n INTEGER PRIMARY KEY, number, what, UNIQUE (number, what))")
        database.execute("INSERT OR IGNORE INTO book (number, what) VALUES (?, ?)", (order, what))
