"""Requests to addresses that users name: every address is checked, and connections go to the checked address only.

Everything that Horae fetches for users goes through `fetch.Outbound`. The engine, the worker and the layers above
import
it.
"""
