"""Every setting with its value and where that stands."""

from typing import Any

from headway.base.errors import NotFoundError
from headway.jobs.context import Context
from headway.jobs.settings import (
    LIMITS,
    SETTINGS,
    Setting,
    Trust,
    find_setting,
    unusable_settings,
    usable_value,
)


def all_settings(context: Context) -> list[dict[str, Any]]:
    """The documents of all settings, and of the limits that the store has."""
    with context.store.read() as tx:
        stored = tx.settings.all()
    limits = (_stored_limit(key) for key in sorted(stored) if key.startswith(LIMITS))
    return [_document(context, each, stored) for each in (*SETTINGS.values(), *limits)]


def value_of(context: Context, setting: Setting, stored: dict[str, Any]) -> tuple[Any, str]:
    """The value that counts, and where it stands."""
    if setting.in_store:
        unusable = {each.key for each in unusable_settings(stored)}
        counts = setting.key in stored and setting.key not in unusable
        return usable_value(stored, setting), "the store" if counts else "default"
    source = "config.toml" if setting.key in context.config.values else "default"
    return context.config[setting.key], source


def _document(context: Context, setting: Setting, stored: dict[str, Any]) -> dict[str, Any]:
    value, source = value_of(context, setting, stored)
    return {
        "key": setting.key,
        "value": value,
        "default": setting.default,
        "from": source,
        "about": setting.about,
    }


def _stored_limit(key: str) -> Setting:
    try:
        return find_setting(key)
    except NotFoundError:
        about = "a limit of a policy that is not installed here"
        return Setting(key, None, _as_stored, about, Trust.HARMLESS)


def _as_stored(text: str) -> int | str:
    return int(text) if text.isdecimal() else text
