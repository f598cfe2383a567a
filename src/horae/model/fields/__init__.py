"""Fields of nouns: each is declared once, beside its attribute, and read, written, documented and offered from that.

Tables of nouns, their readers, routes, commands, the SDK and the documentation import it.
"""
