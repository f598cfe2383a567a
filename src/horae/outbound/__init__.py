"""Requests to addresses that users name: every address is checked, and connections go to the checked address only.

All requests that Horae makes for users go through `fetch.Outbound`. The engine, the worker and the layers above import
it.
"""
