"""One module per kind of runner: threads, tasks on the loop, child processes, commands, HTTP requests.

A runner works through chunks that the loop launches on it, and can stop the running item.
"""
