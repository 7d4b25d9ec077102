"""HTTP: `headway serve`, its API under `/api/v1`, its streams, and who may use them.

Everything here calls the verbs of `headway.Client` and shows their documents; no rule of scheduling
may enter, no SQL and nothing of the worker. `routes` is the only place that knows paths, rights,
requests and answers. Nothing here is for import by users: they have HTTP, and `headway.Client`.
"""
