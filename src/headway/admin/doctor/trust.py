"""What the doctor says of trust: whether what the folder names counts."""

from collections.abc import Iterator, Mapping

from headway.admin.doctor.finding import GREEN, YELLOW, Finding
from headway.base.home import Home
from headway.base.trust import VARIABLE, why_not
from headway.jobs.settings import Config


def trust_finding(home: Home, config: Config, environ: Mapping[str, str]) -> Iterator[Finding]:
    refusal = why_not(home.path, environ)
    if refusal is None:
        by = f" by {VARIABLE}=1" if environ.get(VARIABLE) == "1" else ""
        yield Finding("trust", GREEN, f"this folder is trusted{by}")
        return
    withheld = (*config.refused, *config.untrusted)
    if not withheld:
        yield Finding("trust", GREEN, "nothing in this folder needs trust")
        return
    detail = f"{', '.join(withheld)}: not trusted, for {refusal}"
    yield Finding("trust", YELLOW, detail, "headway trust")
