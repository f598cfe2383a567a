"""Calls to others that users name: each address is checked, and what is connected to is what was checked.

Everything that Horae fetches for somebody goes through `fetch.Outbound`; engine, worker and those above may import it.
"""
