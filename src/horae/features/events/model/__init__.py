"""Events from outside: their values and views, and readers of the formats that senders use.

They are pure values and decisions. `model/base/event.py` has other events: the updates for user interfaces.
"""
