"""One module per way of running: threads, tasks on the loop, child processes, commands, HTTP requests.

A runner works through chunks that the loop launches on it, and can be told to stop the item that runs.
"""
