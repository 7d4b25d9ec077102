"""The scheduler, its settings, and slots for work that is no job."""

from typing import Any

from headway.base.home import without_password
from headway.core.model import shown, shown_run
from headway.jobs.settings import find_setting, store_setting
from headway.web.calls import Answer, Later, Reply, WebCall
from headway.web.problems import ForbiddenError


def status(call: WebCall) -> Reply:
    return Reply(document=call.client.scheduler.status())


def plan(call: WebCall) -> Reply:
    """What one pass would start now."""
    client = call.client
    limit = store_setting(client.scheduler.settings(), "scheduler.batch_size")
    found = client.scheduler.dry_run(call.query.get("batch", limit))
    return Reply(
        document={
            "dry_run": True,
            "would_start": [{"id": shown(job.id), "name": job.name} for job in found.to_dispatch],
            "skipped": [
                {"id": shown(job.id), "name": job.name, "reason": why} for job, why in found.skipped
            ],
            "reason": found.reason,
        }
    )


def pause(call: WebCall) -> Reply:
    call.client.scheduler.pause(call.body.get("reason"))
    return status(call)


def resume(call: WebCall) -> Reply:
    call.client.scheduler.resume()
    return status(call)


def reset(call: WebCall) -> Reply:
    done = call.client.scheduler.reset()
    return Reply(
        document={"breakers": list(done.hosts), "jobs": [shown(each) for each in done.jobs]}
    )


def clear(call: WebCall) -> Reply:
    done = call.client.items.clear(call.body.get("subject"))
    return Reply(
        document={
            "cleared": [*map(shown, done.cleared), *map(shown_run, done.cleared_runs)],
            "running": [*map(shown, done.running), *map(shown_run, done.running_runs)],
        }
    )


# -- settings ----------------------------------------------------------------------------------


def settings(call: WebCall) -> Reply:
    found = call.client.scheduler.all_settings()
    return Reply(document={"settings": [_without_secrets(each) for each in found]})


def _without_secrets(document: dict[str, Any]) -> dict[str, Any]:
    if document["key"] == "store.url" and document["value"]:
        return {**document, "value": without_password(document["value"])}
    return document


def put_setting(call: WebCall) -> Reply:
    """Settings of the store alone: those of `config.toml` may run code, and are for the file."""
    key = call.path["key"]
    setting = find_setting(key)
    if not setting.in_store:
        raise ForbiddenError(f"{key} stands in config.toml; change it there")
    if call.body["value"] is None:
        call.client.scheduler.unset(key)
    else:
        call.client.scheduler.set(key, call.body["value"])
    return settings(call)


# -- reservations ------------------------------------------------------------------------------


def reserve(call: WebCall) -> Answer:
    call.refuse_bound_to_templates()
    body = call.body
    asked = call.client.reservations.ask(
        note=body.get("note", ""),
        type=body.get("type"),
        resources=tuple(body.get("resources") or ()),
        target=body.get("target"),
    )
    seconds = call.seconds_to_wait()
    if asked["state"] == "running":
        return Reply(201, {"reservation": asked})
    waits = Reply(202, {"reservation": asked})
    if not seconds:
        return waits

    def look(client: Any) -> Reply | None:
        found = client.reservations.look(asked["id"])
        return Reply(201, {"reservation": found}) if found["state"] == "running" else None

    return Later(look, waits, seconds)


def renew(call: WebCall) -> Reply:
    _own(call)
    return Reply(document={"reservation": call.client.reservations.renew(call.path["reservation"])})


def release(call: WebCall) -> Reply:
    _own(call)
    call.client.reservations.release(call.path["reservation"])
    return Reply(204)


def _own(call: WebCall) -> None:
    call.refuse_bound_to_templates()
    holder = call.client.reservations.show(call.path["reservation"])["holder"]
    if not call.principal.may_change(holder):
        raise ForbiddenError(f"{call.path['reservation']} is held by {holder}")
