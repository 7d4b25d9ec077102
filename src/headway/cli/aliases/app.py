"""Names that users imported from `headway.app`."""

from headway.base.renamed import forwarded

__getattr__ = forwarded(
    "headway.app", {"App": "App", "Handle": "Handle", "TaskFailedError": "TaskFailedError"}
)
