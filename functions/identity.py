"""Admission: from a request's credential to a `Caller`, or a refusal that gives nothing away.

What lives here: which kinds of credential a class of routes admits. docs/security.md shows it as a table. What
must never live here: how a token is verified (`functions.cwts`, `core.service.tokens`) and what a use case does.

Two rules hold everywhere. A presented credential is verified, also where none is needed. And a refusal never
depends on whether a space exists: a credential that is not good for the space named is a 401, whatever that
space is; one that is good for it, but not for this, is a 403; only whoever may read a space learns by a 404
that it is not there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, Literal

import msgspec

from core.errors import NoemaError
from core.ports import Clock
from core.service.values import Caller, Scope
from functions import cwts
from functions.failures import unauthenticated
from functions.http import HttpRequest
from functions.keys import PublicKey
from functions.settings import Settings, is_loopback

Admission = Literal["open", "any", "public", "read", "write", "manage", "admin", "host"]
"""Classes of routes.

open: anybody, even without keys. any: any credential that is good for the space, on a public space anybody; what
is called then asks for more (`Gate.require`). public: scope read; on a public space anybody. read, write: that scope.
manage: scope write, by CWT. admin: a manager's CWT for every space, signed with an admin key. host: a CWT of the space,
which the space's records then judge, or what admits to admin, as the host's operator.
"""

NEEDS: Final[dict[Admission, Scope]] = {
    "public": "read",
    "read": "read",
    "write": "write",
    "manage": "write",
    "admin": "write",
}
_PUBLICLY: Final = ("any", "public")  # what nobody in particular may do with a public space
ANY_SPACE: Final = "*"
ANONYMOUS: Final = Caller(subject="anonymous", channel="rest", scope="read", kind="anonymous")
LOCAL: Final = Caller(
    subject="local", channel="rest", scope="*", manager=True, everywhere=True, operator=True
)
_BEARER: Final = re.compile(r"bearer +([^\s,]+) *\Z", re.IGNORECASE)
_ST: Final = "ST"  # a CWT begins with other characters in every spelling


class Gate:
    """Admits callers.

    Args:
        settings: keys, managers, and whether a local caller needs any.
        clock: for a token's times.
        find_token: what a space token's value allows in a space, as a caller; None if nothing.
        is_public: whether a space may be read by anybody; False if it does not exist.
    """

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        find_token: Callable[[str, str], Caller | None],
        is_public: Callable[[str], bool],
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._find_token = find_token
        self._is_public = is_public

    def admit(self, admission: Admission, request: HttpRequest, space: str | None) -> Caller:
        """The verified caller of a request.

        Args:
            admission: the route's class.
            request: the request.
            space: the space its path names, or None.

        Raises:
            NoemaError: `ServiceUnavailable` without keys, `Unauthenticated`, `NotAuthorized`.
            cwts.Rejected: never; it becomes `Unauthenticated`.
        """
        if admission == "open":
            return ANONYMOUS
        if self._settings.locked:
            raise NoemaError(
                "ServiceUnavailable",
                "this deployment has no keys, so nobody can be admitted",
                hint="The operator must set ED25519_PUBKEYS and NOEMA_ADMIN_PUBKEYS.",
                retry_after_ms=60_000,
            )
        if self._settings.insecure_local:
            self._refuse_other_sites(request)
        header = request.headers.get("authorization")
        if header is None:
            return self._without_credential(admission, space)
        match = _BEARER.match(header)
        if match is None:
            raise unauthenticated()
        credential = match[1]
        if admission == "admin":
            return self._admin(credential)
        if space is None:
            raise unauthenticated()
        if admission == "host" and (operator := self._operator(credential)) is not None:
            return operator
        caller = self._in_space(credential, space)
        self._check_scope(admission, caller, space)
        return caller

    def require(self, admission: Admission, caller: Caller, space: str) -> None:
        """Hold a caller, admitted to a space already, to a stricter class: for what is decided after the path.

        Raises:
            NoemaError: `Unauthenticated` where a credential would be needed and none was given, `NotAuthorized`.
        """
        if caller.kind != "anonymous":
            self._check_scope(admission, caller, space)
        elif admission not in _PUBLICLY:
            raise unauthenticated()

    def _without_credential(self, admission: Admission, space: str | None) -> Caller:
        if self._settings.insecure_local:
            return LOCAL
        if admission == "admin" or space is None or not self._is_public(space):
            raise unauthenticated()
        if admission not in _PUBLICLY:
            raise NoemaError("NotAuthorized", "anonymous readers of a public space may not do this")
        return ANONYMOUS

    def _in_space(self, credential: str, space: str) -> Caller:
        if credential.startswith(_ST):
            caller = self._find_token(space, credential)
            if caller is None:
                raise unauthenticated()
            return caller
        claims = self._verified(credential, self._settings.tenant_keys)
        if claims.audience not in (space, ANY_SPACE):
            raise unauthenticated()
        return self._caller(claims)

    def _admin(self, credential: str) -> Caller:
        claims = self._verified(credential, self._settings.admin_keys)
        if claims.audience != ANY_SPACE:
            raise unauthenticated()
        caller = self._caller(claims)
        if not caller.manager:
            raise NoemaError("NotAuthorized", "only a manager may do this", hint="Ask a manager.")
        self._check_scope("admin", caller, None)
        return caller

    def _operator(self, credential: str) -> Caller | None:
        """Who a manager's credential makes on a host's route; None for any other credential."""
        if credential.startswith(_ST):
            return None
        try:
            return msgspec.structs.replace(self._admin(credential), operator=True)
        except NoemaError:
            return None

    def _verified(self, credential: str, keys: tuple[PublicKey, ...]) -> cwts.Claims:
        try:
            return cwts.verify(credential, keys, self._clock.now() / 1000)
        except cwts.Rejected as rejected:
            raise unauthenticated() from rejected

    def _caller(self, claims: cwts.Claims) -> Caller:
        return Caller(
            subject=claims.subject,
            channel="rest",
            scope=claims.scope,
            kind="cwt",
            manager=claims.subject in self._settings.managers,
            everywhere=claims.audience == ANY_SPACE,
        )

    def _check_scope(self, admission: Admission, caller: Caller, space: str | None) -> None:
        if admission in ("manage", "host") and caller.kind != "cwt":
            raise NoemaError(
                "NotAuthorized",
                "a space token may not manage its space",
                hint="Use a CWT with scope write or *.",
            )
        needed = NEEDS.get(admission)
        if needed is None:
            return
        if caller.scope in (needed, "*"):
            return
        if admission == "public" and space is not None and self._is_public(space):
            return  # what anybody may do, this caller may do too
        raise NoemaError(
            "NotAuthorized",
            f"this needs the scope {needed} or *, and the token has {caller.scope}",
            details={"needed": needed, "scope": caller.scope},
        )

    def _refuse_other_sites(self, request: HttpRequest) -> None:
        """Without credentials the browser is the hole: a page of any site can send requests to loopback.

        What comes from a page bears `Origin` (or says cross-site), and a name that was rebound to loopback
        stands in `Host`.
        """
        host = request.headers.get("host", "localhost")
        name = host if host.startswith("[") and host.endswith("]") else host.rsplit(":", 1)[0]
        origin = request.headers.get("origin")
        foreign = origin is not None and origin.lower() not in self._settings.cors_origins
        if foreign or request.headers.get("sec-fetch-site") == "cross-site" or not is_loopback(name):
            raise NoemaError(
                "NotAuthorized",
                "a web page may not call this service while it runs without keys",
                hint="Add the page's origin to CORS_ORIGINS, or configure keys.",
            )
