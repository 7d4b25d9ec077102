"""All that one can do with a job: make, show, change, order, cancel, retry, group and remove it.

No feature above it may enter: functions, schedules, work items, workers and commands know jobs, not
the other way round. Inside: users reach it through `headway.Client`.
"""
