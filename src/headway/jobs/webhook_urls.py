"""The URLs of webhooks, as far as a submit can judge them: nothing is resolved or sent here."""

from collections.abc import Sequence

from headway.base.errors import InvalidInputError
from headway.core.destinations import (
    AllowedTarget,
    Destination,
    destination_of,
    how_to_allow,
    objection_to,
    parse_allowed,
)
from headway.jobs.settings import Config

MOST_URLS = 8


def checked(url: str) -> Destination:
    """The URL taken apart; raises with what is wrong with it."""
    found = destination_of(url)
    if isinstance(found, str):
        raise InvalidInputError(f"the webhook {shortened(url)!r} is no URL to send to: {found}")
    return found


def check_urls(urls: Sequence[str]) -> None:
    """Of one job."""
    if len(urls) > MOST_URLS:
        raise InvalidInputError(f"a job may have {MOST_URLS} webhooks, not {len(urls)}")
    for each in urls:
        checked(each)


def check_addresses(urls: Sequence[str], config: Config) -> None:
    """Refuse an address that nothing may be sent to. What a name stands for is seen later."""
    for each in urls:
        destination = checked(each)
        if destination.address is not None:
            refuse(destination, [str(destination.address)], allowed_by(config))


def refuse(
    destination: Destination, addresses: Sequence[str], allowed: Sequence[AllowedTarget]
) -> None:
    """Raise if nothing may be sent to it while its name stands for these addresses."""
    for each in addresses:
        objection = objection_to(destination, [each], allowed)
        if objection is not None:
            raise InvalidInputError(
                f"nothing is sent to {destination.origin}: {objection}. If that is meant, begin "
                f"config.toml with: {how_to_allow(destination, each)}"
            )


def allowed_by(config: Config) -> tuple[AllowedTarget, ...]:
    found = (parse_allowed(each) for each in config["webhooks.allow"])
    return tuple(each for each in found if each is not None)


def shortened(url: str) -> str:
    """Without what may be a password."""
    return url if len(url) <= 60 else f"{url[:60]}..."
