"""The service over HTTP, as a command sees it: a call that returns a result or fails with something to do."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Self

import httpx

from functions.cli.terminal import Failure, json_option, pause, service_options

_TIMEOUT_S: Final = 60.0
_TRIES: Final = 6  # of a call that may be repeated: about 30 s in all
_BUSY: Final = (429, 503)
_SIGN_IN: Final = (
    "Set NOEMA_TOKEN, or give --token. `noema token` mints one with a key that the service knows."
)


class Client:
    """One connection to one service.

    Args:
        url: the service's root.
        token: a credential, or None.
        transport: how requests are sent; for tests.
    """

    def __init__(self, url: str, token: str | None, transport: httpx.BaseTransport | None = None) -> None:
        self.url = url.rstrip("/")
        headers = {"authorization": f"Bearer {token}"} if token else {}
        try:
            self._http = httpx.Client(
                base_url=self.url, headers=headers, timeout=_TIMEOUT_S, trust_env=False, transport=transport
            )
        except httpx.InvalidURL as error:
            raise Failure(f"{url} is no URL", "Give one such as http://127.0.0.1:8042") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._http.close()

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: dict[str, str | int] | None = None,
        key: str | None = None,
        patient: bool = False,
        if_match: int | None = None,
    ) -> Any:  # the JSON the service answers with
        """The service's whole answer.

        Args:
            method: GET, POST or PATCH.
            path: below the service's root.
            body: sent as JSON.
            query: parameters.
            key: an idempotency key: the same request may then be sent again and is done once.
            patient: repeat while the service is busy or out of reach; only for calls that may be repeated.
            if_match: the version that what is changed must still have.

        Raises:
            Failure: the service said no, or could not be reached.
        """
        headers = {} if key is None else {"idempotency-key": key}
        if if_match is not None:
            headers["if-match"] = str(if_match)
        for attempt in range(1, _TRIES + 1):
            last = not patient or attempt == _TRIES
            try:
                response = self._http.request(method, path, json=body, params=query, headers=headers)
            except httpx.TransportError as error:
                if last:
                    raise self._unreachable(error) from error
                pause(min(0.5 * 2**attempt, 8.0))
                continue
            if response.status_code in _BUSY and not last:
                pause(min(float(response.headers.get("retry-after", "1")), 10.0))
                continue
            return _read(response)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def result(self, method: str, path: str, body: Any = None, **options: Any) -> Any:  # as `call`
        """The `result` member of the service's answer."""
        return self.call(method, path, body, **options)["result"]

    def _unreachable(self, error: httpx.TransportError) -> Failure:
        if isinstance(error, httpx.TimeoutException):
            return Failure(f"the service at {self.url} did not answer in time", "Try again in a moment.")
        return Failure(
            f"there is no service at {self.url}",
            "Start one with `noema serve`, or name another with --url or NOEMA_URL.",
        )


def service_command(command: Callable[..., tuple[str, object]]) -> Callable[..., Any]:
    """Gives a command `--url`, `--token` and `--json`, and a `client` of the service that they name.

    The command answers as `json_option` says.
    """

    @functools.wraps(command)
    def connected(*args: Any, url: str, token: str | None, **kwargs: Any) -> tuple[str, object]:
        with Client(url, token) as client:
            return command(*args, client=client, **kwargs)

    return service_options(json_option(connected))


def _read(response: httpx.Response) -> Any:  # JSON
    try:
        answer = response.json()
    except ValueError as error:
        raise Failure(
            f"{response.url} answered {response.status_code} with something that is not JSON",
            "Is this the address of a Noema service?",
        ) from error
    if response.is_success:
        return answer
    told = answer.get("error") if isinstance(answer, dict) else None
    if not isinstance(told, dict):
        raise Failure(
            f"{response.url} answered {response.status_code}", "Is this the address of a Noema service?"
        )
    data = told.get("data") or {}
    hint = _SIGN_IN if response.status_code == httpx.codes.UNAUTHORIZED else data.get("hint")
    raise Failure(told.get("message", f"status {response.status_code}"), hint, code=data.get("code"))
