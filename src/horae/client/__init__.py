"""The SDK: functions as jobs, and the REST API as Python, over HTTP or inside one process.

`app` registers functions, `client` calls a server through one `transport`. Imports model, env and errors only.
"""
