"""Claims that were made before have it checked by `headway.probes.__main__`."""

from headway.integrations.probes.__main__ import main as main
