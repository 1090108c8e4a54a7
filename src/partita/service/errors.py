"""Errors as JSON: never the message of a foreign exception, never a path on the disk of the server."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from partita import errors

_RESPONSES: Final[Mapping[type[errors.PartitaError], tuple[int, str | None]]] = {
    errors.InvalidParameter: (400, None),
    errors.InvalidData: (400, None),
    errors.IncompatibleGuarantees: (409, None),
    errors.HorizonReached: (409, "the stream has no period left; what it published stays as it is"),
    errors.LedgerRefusal: (409, None),
    errors.LedgerError: (
        503,
        "the ledger cannot be used now; the same request, sent again later, is charged once",
    ),
    errors.StreamBusy: (409, "the stream is open in another process"),
    errors.StreamForked: (409, "the state of the stream is older than what was published from it"),
    errors.StreamError: (
        503,
        "the files of the stream cannot be used now; what was acknowledged is not lost",
    ),
    errors.InvalidState: (503, "the state of the stream cannot be used"),
    errors.InvalidRelease: (503, "the file of the release is damaged, or was made by a newer version"),
    errors.SourceError: (503, "the rows could not be read"),
    errors.EntropyError: (503, "the system gave no randomness; try again"),
}
"""Status and message of an error, the nearest class first; None: its own message, which names no file."""

_KINDS: Final = {400: "InvalidRequest", 404: "NotFound", 405: "MethodNotAllowed", 413: "BodyTooLarge"}
_FOLDERS: Final = re.compile(r"(?<=['\"])/[^'\"]*/|(?<![\w.:/'\"])/(?:[^/\s'\"]+/)*")
_DECLARED: Final = re.compile(r"[a-z][a-z0-9_-]{0,39}", re.IGNORECASE)
_INTERNAL: Final = "something went wrong that should not have; the log of the service says when"


class ErrorEntries(BaseModel):
    """What went wrong."""

    kind: str = Field(description="a name for programs", examples=["InvalidParameter"])
    message: str = Field(description="the rule, what was given where that is public, and what to do")
    parameter: str | None = Field(default=None, description="what the error is about, where that is known")


class ErrorBody(BaseModel):
    """The body of every answer that is an error."""

    error: ErrorEntries


ERRORS: Final[dict[int | str, dict[str, Any]]] = {
    status: {"model": ErrorBody, "description": HTTPStatus(status).phrase}
    for status in (400, 401, 403, 404, 405, 408, 409, 413, 421, 422, 429, 431, 500, 503)
}
"""The errors that any address may answer with, for the document that describes the API."""


class Refusal(errors.PartitaError):
    """An error response: its status, a name for programs, and a message for people."""

    def __init__(
        self,
        status: int,
        kind: str,
        message: str,
        *,
        parameter: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.kind, self.parameter = status, kind, parameter
        self.headers = dict(headers or {})

    def response(self) -> Response:
        """The response as JSON; caches must not store errors."""
        entries = {"kind": self.kind, "message": str(self)}
        if self.parameter is not None:
            entries["parameter"] = self.parameter
        headers = {"cache-control": "no-store", **self.headers}
        return JSONResponse({"error": entries}, status_code=self.status, headers=headers)


def not_found(what: str) -> Refusal:
    """A 404: there is no such thing, or the caller may not know of it.

    >>> str(not_found("release"))
    'there is no such release'
    """
    return Refusal(404, "NotFound", f"there is no such {what}")


def refusal_of(error: Exception) -> Refusal:
    """The response to an error; the message of a foreign exception is never shown."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, ClientDisconnect):
        return Refusal(400, "Disconnected", "the request ended before its body did")
    for kind in type(error).__mro__:
        if kind in _RESPONSES:
            return _translate(error, *_RESPONSES[kind])
    return Refusal(500, "InternalError", _INTERNAL)


def strip_folders(message: str) -> str:
    """A message without the folders of files: the layout of the disk is not public.

    >>> strip_folders("ledger '/srv/secret/budget.db' has 1/2 left")
    "ledger 'budget.db' has 1/2 left"
    """
    return _FOLDERS.sub("", message)


def _translate(error: Exception, status: int, words: str | None) -> Refusal:
    message = strip_folders(str(error)) if words is None else words
    return Refusal(status, type(error).__name__, message, parameter=getattr(error, "parameter", None))


@final
@dataclass(frozen=True)
class ErrorMiddleware:
    """Turns every exception into a response; none reaches the server, which would print it.

    If a response has begun already, the connection ends. `unexpected` is called with the request and the type
    of an exception that is not one of ours, and with nothing else of it.
    """

    app: ASGIApp
    unexpected: Callable[[Scope, str], None]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        begun = False

        async def watched(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        refusal = await self._attempt(scope, receive, watched)
        if refusal is not None and not begun:
            await refusal.response()(scope, receive, send)

    async def _attempt(self, scope: Scope, receive: Receive, send: Send) -> Refusal | None:
        try:
            await self.app(scope, receive, send)
        except Exception as error:
            refusal = refusal_of(error)
            if refusal.status == HTTPStatus.INTERNAL_SERVER_ERROR:
                self.unexpected(scope, type(error).__name__)
            return refusal
        return None


def add_error_handlers(app: FastAPI) -> None:
    """Give the errors that FastAPI raises by itself the same form."""

    async def invalid(_: Request, error: Exception) -> Response:
        return _invalid(error.errors() if isinstance(error, RequestValidationError) else []).response()

    async def refused(_: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        phrase = HTTPStatus(status).phrase.lower()
        headers = getattr(error, "headers", None)
        return Refusal(status, _KINDS.get(status, "Refused"), phrase, headers=headers).response()

    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, refused)


def _invalid(found: Any) -> Refusal:
    """The first error of a request: which parameter and which rule, never the value that was sent."""
    first = next(iter(found), {"loc": (), "msg": "must be as the API describes it", "type": ""})
    parameter = _parameter(first)
    message = f"{parameter or 'the body'}: {strip_folders(str(first['msg']))}"
    return Refusal(422, "InvalidRequest", message, parameter=parameter)


def _parameter(found: Mapping[str, Any]) -> str | None:
    """The declared name that an error is about; a name that the caller invented is not repeated."""
    place = found["loc"][1:2]
    if found["type"] == "extra_forbidden" or not place or not isinstance(place[0], str):
        return None
    return place[0] if _DECLARED.fullmatch(place[0]) else None
