"""The nouns of a transaction, one module each: what can be done with rows of one kind.

Only this room and `bulk` name queries. No rule of the scheduler is decided here.
"""
