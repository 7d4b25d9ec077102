"""Fill the references of a node's command with what other nodes came to, when it is claimed."""

from typing import Any

from headway.base.errors import HeadwayError
from headway.core.gates.routes import OF_NODE
from headway.core.model import Job, shown
from headway.jobs.routes import NodeValues
from headway.store.transaction import ReadTx
from headway.workflows.references import UNKNOWN, Kind, Reference, fill_texts, references_in

FILLED = ("argv", "env", "cwd")  # the parameters of a job in which references may stand


class MissingValueError(HeadwayError):
    """What a reference names was never set, because its node did not come to that."""


def filled(tx: ReadTx, job: Job) -> Job:
    """The job with every reference of its command replaced. Raises MissingValueError."""
    given = {key: job.params[key] for key in FILLED if key in job.params}
    wanted = list(references_in(given))
    if not wanted:
        return job
    nodes = (each.name for each in wanted if each.kind in (Kind.NODES, Kind.LAST))
    values, known = NodeValues(tx, job, nodes), job.params[OF_NODE]["values"]

    def look_up(each: Reference) -> Any:
        match each.kind:
            case Kind.PARAMS | Kind.MATRIX | Kind.ARGS:
                return known[each.text]
            case Kind.RUN:
                return values.of_run(each.name)
            case Kind.LAST:
                value = values.of_node(each.name, each.field, each.output)
                return "" if value is None else value
            case Kind.NODES:
                value = values.of_node(each.name, each.field, each.output)
                if value is None:
                    raise MissingValueError(_not_set(each, values))
                return value
            case _:
                return UNKNOWN

    return job._replace(params={**job.params, **fill_texts(given, look_up)})


def _not_set(each: Reference, values: NodeValues) -> str:
    end = next((end for end in values.ends if end.node == each.name), None)
    said = f"'{each.name}' ({shown(end.job_id)}) is {end.status}" if end else "unknown"
    return f"{each.text}: {said}"
