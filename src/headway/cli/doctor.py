"""`headway doctor`: show what the checkup found; every finding names the next step."""

import os
from typing import Any

import click

from headway.admin.doctor import GREEN, RED, YELLOW, Finding, examine
from headway.cli.render import emit, fields, paint
from headway.cli.scope import Scope


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def doctor(scope: Scope, as_json: bool) -> int:
    """Check the host, the folder and the store.

    It changes nothing. Exit 1 if something is red.
    """
    findings = list(examine(scope.home, scope.store, os.environ, os.getcwd()))
    red = any(each.level == RED for each in findings)
    if as_json:
        emit({"ok": not red, "findings": [_document(each) for each in findings]})
        return int(red)
    marks = {GREEN: "ok", YELLOW: "warn", RED: "BAD"}
    room = max(len(each.check) for each in findings)
    for each in findings:
        mark = paint(marks[each.level].ljust(4), each.level)
        document = each.detail + (f" -> {each.next_step}" if each.next_step else "")
        lines = fields([(each.check.ljust(room), document)], indent=" " * 6)
        print(f"{mark}  {lines[0].lstrip()}")
        for line in lines[1:]:
            print(line)
    return int(red)


def _document(finding: Finding) -> dict[str, Any]:
    return {
        "check": finding.check,
        "level": finding.level,
        "detail": finding.detail,
        "next": finding.next_step,
    }
