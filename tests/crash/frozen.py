"""Loaded last by the process that actors are forked from: what it has loaded is no garbage, and a
search for some would copy all of it into each of them."""

import gc

gc.collect()
gc.freeze()
