"""Webhooks: requests to URLs of others about what happened to jobs.

The events of the store are the outbox. A courier, a process of its own beside the worker, makes
deliveries of them and sends these. No rule of scheduling may enter, nothing of HTTP servers, and
nothing that a submit would have to load. Inside: users reach it through `headway.Client`.
"""
