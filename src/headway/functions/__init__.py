"""Python functions as jobs: apps, tasks and handles; `host/` is inside of the process that calls
them, `pool/` the worker's side.

Neither schedules nor work items may enter, nor the worker.
Inside: users reach it through `headway.App` and the other names of `headway`.
"""
