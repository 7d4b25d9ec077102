"""The job graph as people look at it: which jobs are shown, in which order, what each waits for.

`model` is pure and decides; `loading` asks the store; the other modules each write one format.
"""
