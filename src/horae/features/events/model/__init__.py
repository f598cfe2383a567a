"""Events from outside: what they are, which triggers they fire, and how senders sign and spell them.

Pure values and decisions. `model/base/event.py` is something else: hints for people's screens.
"""
