"""What an older supervisor wrote is understood by a newer scheduler: jobs outlive upgrades."""

from pathlib import Path

from headway.supervise.records import OutcomeRecord

TOKEN = "0123456789abcdef0123456789abcdef"


def test_an_outcome_of_version_1_is_understood() -> None:  # fault A8
    """The file is as the first release wrote it, byte for byte; never write it anew."""
    content = Path(__file__).with_name("outcome.v1.json").read_bytes()
    outcome = OutcomeRecord.from_json(content, token=TOKEN)
    assert outcome is not None
    assert (outcome.job, outcome.reason, outcome.signal) == (24, "signalled", "SIGSEGV")
    assert (outcome.exit_code, outcome.wait_status) == (None, 11)
    assert outcome.logs["stderr"] == {"bytes": 70000000, "dropped": 2891136}
    assert outcome.finished_at == 1794731834959675


def test_an_outcome_of_an_unknown_version_is_no_evidence() -> None:
    content = Path(__file__).with_name("outcome.v1.json").read_bytes()
    newer = content.replace(b'"version":1', b'"version":99')
    assert newer != content
    assert OutcomeRecord.from_json(newer, token=TOKEN) is None
