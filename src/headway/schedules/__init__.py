"""Schedules that make jobs at certain times: cron, intervals, instants, and the entries of a jobs
file.

Neither functions nor work items may enter: the maker of a slot's job is handed in.
Inside: users reach it through `headway.Client` and the names of `headway`.
"""
