"""Coding agents as jobs: how each agent program is called, watched and understood.

A runner is data (`files`), a job of type `agent` names one and has a prompt, `command_line`
makes the command line of both, `wrapper` is the job's main process, and `streams` read what the
agent programs print. The wrapper needs neither store nor settings and weighs little.
"""
