"""The rules: may a job start, how did it end and what follows, which slot of a schedule is due.

Pure: no I/O, no clock, no randomness, no logging and no threads may enter. `decide(job, facts)`,
`settle(job, outcome)` and `fire(schedule, rule, now)` are the three questions.
Inside: users reach some of its names through `headway`.
"""
