"""The SDK: functions as jobs, and the REST API as Python, over HTTP or inside one process.

`app` registers functions; `client` calls a server through a `transport`. This package imports no code of servers and
workers.
"""
