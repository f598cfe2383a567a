"""The layers of a node, from the ground up: each puts together what has one responsibility, from the layers below it.

A layer is a class over the one below, so that everything has one name on the node; only `engine/node.py` imports them.
"""
