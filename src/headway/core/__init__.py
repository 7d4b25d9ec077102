"""The rules. Pure: no I/O, no clock, no randomness, no logging, no threads.

Three questions are the whole brain: `decide(job, facts)`, may it start? `settle(job, outcome)`, how
did it end, and what follows? And, later, `fire(schedule, now)`, what is due?
"""
