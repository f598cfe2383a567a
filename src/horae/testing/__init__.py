"""For those who test with Horae: a virtual clock, an inline runner, the store contract, a private PostgreSQL.

Users and Horae's own tests and benches import this; no other layer does.
"""
