"""Requests to addresses that users name. Each address is checked, and connections go only to checked addresses.

All requests that Horae makes for users go through `fetch.Outbound`. The engine, the worker and the layers above import
this package.
"""
