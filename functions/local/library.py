"""A memory in a directory, for `functions.library`: requests answered in this process, by the same routes.

What lives here: the service over the embedded store, without HTTP in between. What must never live here: meaning;
a request is checked against the route's types as `functions.routing` checks it, and the same function answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from core.errors import NoemaError
from core.model.ids import check_space_id
from core.protocol.http_types import CreateSpaceInput
from core.service.values import Caller
from functions import catalog, endpoints, negotiate
from functions.adapters import adapters
from functions.bootstrap import Services, build
from functions.embedder_settings import read_embedder
from functions.http import HttpRequest
from functions.plain import encode_json
from functions.routing import DEFAULT_DEADLINE_MS, Call
from functions.settings import Settings

_CALLER = Caller("library", "library", "*")
_TIER = 8  # room for 10^10 facts: a directory's limit is the disk


class InProcess:
    """Requests to services of this process."""

    def __init__(self, found: Services, space: str) -> None:
        self._found = found
        self._space = space

    def send(
        self, method: str, path: str, body: Any, query: Mapping[str, str], key: str | None
    ) -> Any:  # JSON
        """The `result` of a route below `/v1/<space>`. Raises `NoemaError`."""
        name, params = endpoints.find(method, f"/v1/{self._space}{path}")
        route = catalog.ROUTES[name]
        request = HttpRequest(
            method=method,
            path=path,
            query=dict(query),
            headers={"content-type": "application/json"},
            body=b"" if body is None else encode_json(body),
            request_id="library",
        )
        call = Call(
            caller=_CALLER,
            space=self._space,
            params=params,
            body=None if route.body is None else negotiate.decode_body(request, route.body, None),
            query=None if route.query is None else negotiate.decode_query(request, route.query),
            deadline=self._found.clock.now() + DEFAULT_DEADLINE_MS,
            idempotency_key=key,
            request=request,
        )
        return msgspec.to_builtins(route.call(self._found, call))

    def close(self) -> None:
        """Close the store's connections, where it has any."""
        close = getattr(self._found.table, "close", None)
        if close is not None:
            close()


def open_directory(directory: Path, space: str, embedder: str | None = None) -> InProcess:
    """The service over a directory, which is made if it is not there, and so is the space.

    Raises:
        ValueError: the name of the embedder is none.
    """
    check_space_id(space)
    name = embedder or ("static" if find_spec("wordllama") else "none")  # as `noema serve`
    setting = read_embedder({"NOEMA_EMBEDDER": name})
    directory.mkdir(parents=True, exist_ok=True)
    settings = Settings(store="embedded", data_dir=str(directory), insecure_local=True, embedder=setting)
    return in_process(build(settings, adapters(settings)), space)


def in_process(found: Services, space: str) -> InProcess:
    """Requests to these services, with the space made if it is not there."""
    try:
        found.spaces.head(space)
    except NoemaError as error:
        if error.code != "NotFoundOrNotVisible":
            raise
        wish = CreateSpaceInput(user=_CALLER.subject, space_id=space, tier=_TIER)
        deadline = found.clock.now() + DEFAULT_DEADLINE_MS
        try:
            found.admin.create_space(_CALLER, wish, deadline)
        except NoemaError as other:
            if other.code != "IdentityConflict":  # another process was first
                raise
    return InProcess(found, space)
