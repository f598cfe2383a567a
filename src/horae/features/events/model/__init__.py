"""Events from outside: their values and views, and readers of the formats that senders use.

Pure values and decisions. `model/base/event.py` is something else: updates for user interfaces.
"""
