"""Torture: kill everything at random while jobs run, then judge what the jobs themselves wrote.

`checker.py` and what it reads with (`ledger.py`, `records.py`, `database.py`, `processes.py`) know
nothing of Headway's code. docs/torture.md says how to run it and what each check means.
"""
