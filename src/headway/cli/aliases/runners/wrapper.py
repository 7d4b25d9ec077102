"""Claims of agent jobs that were made before run `headway.runners.wrapper`."""

from headway.integrations.agents.wrapper import main as main
