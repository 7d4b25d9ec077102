"""What turns a job's parameters into something that runs: one module for each type of job."""

TYPES = frozenset({"command", "function"})
