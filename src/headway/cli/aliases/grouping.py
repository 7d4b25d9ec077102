"""Names that users imported from `headway.grouping`."""

from headway.base.renamed import forwarded

__getattr__ = forwarded(
    "headway.grouping", {"Plan": "Plan", "submit_group": "Client.groups.submit"}
)
