"""Names that users imported from `headway.runners`."""

from headway.base.renamed import forwarded

__getattr__ = forwarded("headway.runners", {"agent_request": "agent_request"})
