"""The job graph as people see it: which jobs are shown, in which order, what each waits for.

`model` is pure and decides; `loader` asks the store; the other modules each write one format.
"""
