"""Supervisors that were started before run `headway.git.__main__` when their job has ended."""

from headway.integrations.git.__main__ import main as main
