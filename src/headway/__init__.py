"""Headway: a durable job scheduler that needs no service."""

__version__ = "0.1.0"
