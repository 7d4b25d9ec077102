"""Workflows: files of steps that become graphs of ordinary jobs. It knows jobs and what is below
them. Nothing here runs a job, and no schedule, function or command line may enter.
Inside: users reach it through `headway.Client`, and through the files that they write.
"""
