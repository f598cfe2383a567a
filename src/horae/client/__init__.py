"""The SDK: functions as jobs, and the REST API as Python, over HTTP or inside one process.

`app` registers functions; `client` calls a server through one `transport`. This package imports only model, env and
errors.
"""
