"""`headway __workflow-node --job-id N`: the process of a workflow's node. Nobody types it.

Outside of the claim of that job it does nothing.
"""

import click

from headway.workflows.node_process import run_node


@click.command("__workflow-node", hidden=True)
@click.option("--job-id", "job", metavar="JOB", required=True)
def workflow_node(job: str) -> None:
    run_node(job)
