"""What a route is, and the rights that it can ask for. `routes` has the table of them."""

from collections.abc import Mapping
from typing import NamedTuple

from headway.base.shapes import Schema
from headway.core.principals import Principal, Role
from headway.web.calls import Handler, Reply
from headway.web.problems import ForbiddenError

API = "/api/v1"
LARGEST = 1 << 20
NONE: Mapping[str, Schema] = {}


class Right(NamedTuple):
    """Who may use a route: the least role; and where a person decides, no agent."""

    role: Role
    person: bool = False
    public: bool = False  # needs no credential

    def require(self, principal: Principal) -> None:
        if principal.role < self.role:
            raise ForbiddenError(
                f"{principal.name} has the role {principal.role.word}; this needs {self.role.word}"
            )
        if self.person and not principal.is_person:
            raise ForbiddenError(f"{principal.name} is an agent; a person decides")


READ = Right(Role.READ)
SUBMIT = Right(Role.SUBMIT)
OPERATE = Right(Role.OPERATE)
DECIDE = Right(Role.OPERATE, person=True)
ADMIN = Right(Role.ADMIN, person=True)
PUBLIC = Right(Role.READ, public=True)


class Route(NamedTuple):
    """`answers` are the codes of success, each with the name of its schema in `openapi`."""

    method: str
    path: str
    right: Right
    handler: Handler
    about: str
    answers: Mapping[int, str]
    query: Mapping[str, Schema] = NONE
    body: Schema | None = None
    headers: tuple[str, ...] = ()
    largest: int = LARGEST
    verbs: tuple[str, ...] = ()
    own: bool = False  # with the role submit, of one's own jobs alone
    stream: bool = False
    media: str = "application/json"
    old: bool = False  # another route has taken its place
    form: bool = False  # also takes what a page's form sends
    page: bool = False  # for people: no part of the API
    fixed: Reply | None = None  # the answer is always this: no store is asked
