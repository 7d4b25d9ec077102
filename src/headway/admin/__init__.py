"""Care for a home and its store: doctor, backup and restore, the system's service, trust, the demo.

The worker and the client may not enter. Inside: users reach it through the command line, and parts
of it through `headway.Client`.
"""
