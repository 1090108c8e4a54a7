"""Pages of other sites may link here, and do nothing else.

A page elsewhere cannot read what the service says, but can have the browser of somebody who may ask for it:
as an image, a thousand times. Browsers say whose page a request is for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from starlette.types import ASGIApp, Receive, Scope, Send

from partita.service.access.scopes import NEEDS, Side
from partita.service.web.errors import Refusal

__all__ = ["Sites"]

_SITE: Final = (b"sec-fetch-site", b"cross-site")
_LINK: Final = (b"sec-fetch-mode", b"navigate")


@final
@dataclass(frozen=True)
class Sites:
    """Refuses what a page of another site asks for, unless somebody goes from there to a page of readers."""

    app: ASGIApp
    side: Side

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and _SITE in scope["headers"] and not self._is_followed(scope):
            raise Refusal(
                403, "OtherSite", "a page of another site asked for this; links to pages are what it may have"
            )
        await self.app(scope, receive, send)

    def _is_followed(self, scope: Scope) -> bool:
        return self.side == "reading" and _LINK in scope["headers"] and NEEDS["reading"](scope) is None
