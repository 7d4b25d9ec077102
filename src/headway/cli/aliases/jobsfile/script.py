"""`python -m headway.jobsfile.script` stands in the commands of stored jobs."""

from runpy import run_module

if __name__ == "__main__":
    run_module("headway.schedules.jobsfile.script", run_name="__main__")
