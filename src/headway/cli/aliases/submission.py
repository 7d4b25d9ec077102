"""Names that users imported from `headway.submission`."""

from headway.base.renamed import forwarded

__getattr__ = forwarded("headway.submission", {"Request": "Request"})
