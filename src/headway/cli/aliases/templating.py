"""Names that users imported from `headway.templating`."""

from headway.base.renamed import forwarded

__getattr__ = forwarded(
    "headway.templating",
    {
        "add_template": "Client.templates.add",
        "archive_template": "Client.templates.archive",
        "submit_template": "Client.templates.submit",
    },
)
