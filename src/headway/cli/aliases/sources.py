"""Names that users imported from `headway.sources`."""

from headway.base.renamed import forwarded

__getattr__ = forwarded("headway.sources", {"Seen": "Seen"})
