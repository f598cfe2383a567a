"""A money transfer that survives crashes, waits for approval and can be undone: Temporal's example as durable Python.

The accounts are in a SQLite database in this folder. Withdrawals and deposits are steps in its own transactions, so
each happens once, whichever process crashes.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

from horae import App, Context, GiveUp, SignalTimeout

app = App("bank")
BANK = Path(__file__).parent / "bank.db"
LARGE = 1000  # the amount from which an approval is needed

SCHEMA = "CREATE TABLE IF NOT EXISTS accounts (name TEXT PRIMARY KEY, balance INTEGER NOT NULL CHECK (balance >= 0))"


@app.job("open-account")
def open_account(name: str, balance: int = 0, bank: str = str(BANK)) -> None:
    """Open an account, or set its balance."""
    with closing(connect(bank)) as connection:
        sql = "INSERT INTO accounts VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET balance = excluded.balance"
        connection.execute(sql, (name, balance))


@app.job("money-transfer", durable=True, retries=5, retry={"delay": "200ms"})
def transfer(ctx: Context, source: str, target: str, amount: int, bank: str = str(BANK)) -> str:
    """Withdraw from one account and deposit to another; if the deposit fails, put the amount back."""
    if amount >= LARGE and not approved(ctx):
        return "refused"
    with closing(connect(bank)) as connection:
        steps = ctx.sync.transaction(connection)
        steps.create_table()
        left = steps.step("withdraw", change, connection, source, -amount)
        ctx.log("%s has %s left", source, left)
        try:
            steps.step("deposit", change, connection, target, amount)
        except GiveUp:
            steps.step("put back", change, connection, source, amount)
            raise
    ctx.sync.step("tell", print, f"{amount} went from {source} to {target}")
    return "done"


def approved(ctx: Context) -> bool:
    """Wait for a decision, at most for two days, without using a worker."""
    try:
        return bool(ctx.sync.wait_for("decision", timeout="2d")["approved"])
    except SignalTimeout:
        return False


def change(connection: sqlite3.Connection, account: str, amount: int) -> int:
    """Change a balance; fail at once if the account has too little or does not exist."""
    try:
        sql = "UPDATE accounts SET balance = balance + ? WHERE name = ? RETURNING balance"
        found = connection.execute(sql, (amount, account)).fetchone()
    except sqlite3.IntegrityError:
        raise GiveUp(f"{account} has less than {-amount}") from None
    if found is None:
        raise GiveUp(f"there is no account {account}")
    balance: int = found[0]
    return balance


def connect(bank: str) -> sqlite3.Connection:
    """Open a connection that starts transactions only explicitly."""
    connection = sqlite3.connect(bank, isolation_level=None)
    connection.execute(SCHEMA)
    return connection
