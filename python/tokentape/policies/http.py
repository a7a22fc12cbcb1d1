"""One HTTP server that speaks JSON: what policies need of it, and its failures said once.

*Invariant*: every failure is a `PolicyError` that names the server, says what happened and what to do; its `transient`
says whether another try may help. A task that is cancelled closes its connection.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, NoReturn

from tokentape.errors import ArgumentError, PolicyError

if TYPE_CHECKING:
    import httpx

__all__ = ["JsonServer"]

TRANSIENT_STATUS = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
"""Statuses that say: not now. Of the others, another try gets the same answer."""
KEEP_OPEN_SECONDS = 2.0
"""Servers close idle connections too, some after 5 s: a request must not meet one that is just being closed."""
SHOWN_CHARACTERS = 300
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class JsonServer:
    """Asks one server, over connections that are kept open.

    Args:
        url: `http://host:port`, with a path in front of the routes where there is one.
        kind: What the server should be, for messages.
        timeout: Seconds that an answer may take.
        headers: Further headers, such as an API key.

    Raises:
        ArgumentError: the URL is none, or httpx is not installed.
    """

    def __init__(self, url: str, *, kind: str, timeout: float, headers: dict[str, str] | None = None) -> None:
        """Connect to nothing yet."""
        self._httpx = _httpx()
        self.url = url.rstrip("/")
        self.kind = kind
        self.timeout = timeout
        self._headers = headers or {}
        self._clients: dict[asyncio.AbstractEventLoop, httpx.AsyncClient] = {}
        self._host = self._checked_host()

    async def post(self, route: str, body: Any) -> Any:
        """The JSON value that a route answers to a JSON value.

        Raises:
            PolicyError: no answer, an HTTP error, or an answer that is no JSON.
        """
        content = json.dumps(body, separators=(",", ":"), allow_nan=False)
        errors = self._httpx
        try:
            answer = await self._client().post(self.url + route, content=content)
        except errors.TimeoutException:
            self.fail(
                f"no answer to {route} within {self.timeout:g} s; it is slow, overloaded or hangs: look at its log, "
                "ask for fewer tokens or less at once, or raise the timeout",
                transient=True,
            )
        except errors.ConnectError as error:
            self.fail(f"cannot connect ({_reason(error)}); is it running, and is this its address?", transient=True)
        except errors.HTTPError as error:
            self.fail(
                f"the connection ended before the answer to {route} was whole ({_reason(error)}); if the server has "
                "stopped, its log says why",
                transient=True,
            )
        return self._value(answer, route)

    async def close(self) -> None:
        """Close the connections of this event loop; another request opens new ones."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    def fail(self, what: str, *, transient: bool) -> NoReturn:
        """Raise the error of this server."""
        error = PolicyError(f"{self.kind} at {self.url}: {what}")
        error.transient = transient
        raise error

    def _value(self, answer: httpx.Response, route: str) -> Any:
        status, text = answer.status_code, answer.text
        if status != 200:  # noqa: PLR2004 -- HTTP's own number
            self.fail(f"{route} answered HTTP {status}: {_told(text)}", transient=status in TRANSIENT_STATUS)
        try:
            return json.loads(text)
        except ValueError as error:
            self.fail(f"the answer to {route} is no JSON ({error}): {_shown(text)}", transient=False)

    def _client(self) -> httpx.AsyncClient:
        """The client of this event loop: connections cannot move to another."""
        loop = asyncio.get_running_loop()
        for other in [other for other in self._clients if other.is_closed()]:
            del self._clients[other]
        if loop not in self._clients:
            self._clients[loop] = self._httpx.AsyncClient(
                timeout=self._httpx.Timeout(self.timeout, connect=min(self.timeout, 30.0)),
                limits=self._httpx.Limits(
                    max_connections=None, max_keepalive_connections=None, keepalive_expiry=KEEP_OPEN_SECONDS
                ),
                headers={"content-type": "application/json", **self._headers},
                trust_env=self._host not in LOOPBACK,  # a proxy knows nothing of this machine's own ports
            )
        return self._clients[loop]

    def _checked_host(self) -> str:
        try:
            url = self._httpx.URL(self.url)
        except self._httpx.InvalidURL as error:
            raise ArgumentError(f"{self.url!r} is no URL ({error}): give http://host:port") from None
        if url.scheme not in {"http", "https"} or not url.host:
            raise ArgumentError(f"{self.url!r} is no URL of a server: give http://host:port")
        return url.host


def _httpx() -> Any:
    try:
        import httpx  # noqa: PLC0415 -- the extra `http`
    except ImportError:
        raise ArgumentError("talking to a server needs the extra `http`: pip install 'tokentape[http]'") from None
    return httpx


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__


def _told(text: str) -> str:
    """The message of an error body: most servers put it at `error.message`, `detail` or `message`."""
    try:
        body = json.loads(text)
        error = body.get("error", body)
        found = error if isinstance(error, str) else error.get("message") or error.get("detail")
    except (ValueError, AttributeError):
        found = None
    return found if isinstance(found, str) and found else _shown(text)


def _shown(text: str) -> str:
    short = text.strip()
    if not short:
        return "(empty)"
    return short if len(short) <= SHOWN_CHARACTERS else f"{short[:SHOWN_CHARACTERS]}..."
