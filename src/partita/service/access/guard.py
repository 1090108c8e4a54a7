"""The guard: every request is let in by a scope and a rate, or is answered here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

from starlette.types import ASGIApp, Receive, Scope, Send

from partita.errors import InvalidParameter
from partita.service.access.buckets import Buckets
from partita.service.access.callers import CALLER, caller_key
from partita.service.access.scopes import NEEDS, Need, Side
from partita.service.access.token_file import Keyring
from partita.service.access.tokens import ANYBODY, Caller
from partita.service.web.errors import Refusal

__all__ = ["Guard"]

_BEARER: Final = "bearer "
_LONGEST: Final = 200


@final
@dataclass(frozen=True)
class Guard:
    """Lets in whoever has the scope that an address needs; routes know of no access at all.

    The caller is put at `request.state.caller`. Who has no valid token is counted by address, who has
    one by name. Feeding a stream that `forgets` is not counted at all: a count would be a memory of who
    came how often. Only plain HTTP is let in.
    """

    app: ASGIApp
    side: Side
    public: bool
    keyring: Keyring | None
    buckets: Buckets
    forgets: Callable[[str], bool]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            caller, need = self._caller(scope), NEEDS[self.side](scope)
            CALLER.set(caller_key(scope, caller))
            if not self._is_forgotten(caller, need):
                self._check_rate()
            self._check_scope(caller, need)
            scope.setdefault("state", {})["caller"] = caller
        elif scope["type"] != "lifespan":
            raise Refusal(400, "NotSupported", "only plain HTTP is spoken here")
        await self.app(scope, receive, send)

    def _caller(self, scope: Scope) -> Caller:
        text = _bearer(scope)
        if text is None or self.keyring is None:
            return ANYBODY
        try:
            return self.keyring.caller(text) or ANYBODY
        except InvalidParameter:
            raise Refusal(503, "NoAccess", "tokens cannot be checked now; tell the steward") from None

    def _is_forgotten(self, caller: Caller, need: Need | None) -> bool:
        fed = None if need is None else need.stream
        return fed is not None and "feed" in caller.scopes and self.forgets(fed)

    def _check_rate(self) -> None:
        wait = self.buckets.wait(CALLER.get())
        if wait:
            headers = {"retry-after": str(wait)}
            raise Refusal(429, "TooManyRequests", f"too many requests; wait {wait} s", headers=headers)

    def _check_scope(self, caller: Caller, need: Need | None) -> None:
        if need is None or (self.public and need.scope == "read"):
            return
        if caller.name is None:
            headers = {"www-authenticate": "Bearer"}
            message = f"a token with the scope {need.scope} is needed: Authorization: Bearer TOKEN"
            raise Refusal(401, "Unauthorized", message, headers=headers)
        if need.scope not in caller.scopes:
            raise Refusal(403, "Forbidden", f"this token does not have the scope {need.scope}")
        if need.stream is not None and caller.streams is not None and need.stream not in caller.streams:
            raise Refusal(403, "Forbidden", "this token may not feed this stream")


def _bearer(scope: Scope) -> str | None:
    """The token of a request, if there is exactly one; anything longer than a token proves nobody."""
    sent = [value for name, value in scope["headers"] if name == b"authorization"]
    text = sent[0][:_LONGEST].decode("latin-1") if len(sent) == 1 else ""
    return text[len(_BEARER) :].strip() if text.lower().startswith(_BEARER) else None
