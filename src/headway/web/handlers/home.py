"""The page behind `/`: how things stand, for one who has just signed in."""

from html import escape
from typing import Any

from headway.web.calls import Reply, WebCall

NEWEST = 50


def home(call: WebCall) -> Reply:
    status = call.client.scheduler.status()
    found = call.client.jobs.list(limit=NEWEST, everything=True).documents[::-1]
    rows = "".join(_row(each) for each in found) or '<tr><td colspan="4">no jobs yet</td></tr>'
    paused = f"paused by {escape(status['paused_by'] or '')}" if status["paused"] else "not paused"
    worker = "a worker is there" if status["worker"] else "no worker is there: headway work"
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>Headway</title>'
        f"<h1>Headway</h1><p>Signed in as {escape(call.client.context.actor)}; {worker}; {paused}; "
        f"{escape(status['reason'] or 'jobs start as soon as they may')}.</p>"
        "<table><thead><tr><th>Job<th>Name<th>State<th>Created</thead>"
        f'<tbody>{rows}</tbody></table><p><a href="/api/v1/openapi.json">The API</a></p></html>'
    )
    return Reply(body=page.encode(), media="text/html; charset=utf-8")


def _row(job: dict[str, Any]) -> str:
    cells = (job["name"], job["state"], job["created_at"])
    link = f'<a href="/api/v1/jobs/{escape(job["id"])}">{escape(job["id"])}</a>'
    return f"<tr><td>{link}{''.join(f'<td>{escape(str(each))}' for each in cells)}"
