"""The real engine on a real store, in simulated time, with simulated processes and crashes.

`simulate(seed)` is one world: hosts whose workers step in an order that the seed decides, jobs
whose processes exist on paper, people who submit, cancel and decide, repositories that change, and
crashes between any two effects. Nothing in it reads a clock or the system's chance, so a seed tells
the same story each time. `watching.py` says what must hold.
"""
