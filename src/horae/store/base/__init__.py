"""Parts that scripts share: columns of shelves, locks, deferred changes, limits in stored specs, names of master keys.

A script is written once for both databases. It selects and moves rows under conditions. The decisions are pure
functions in `model/`.
"""
