"""A real server on a free port of this machine, in a thread, while tests look at it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from partita.service.reading.app import reading_app
from partita.service.settings import ServiceSettings


@contextmanager
def served(settings: ServiceSettings) -> Iterator[str]:
    """The address of the reading side; it is gone afterwards."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        app = reading_app(settings)
        config = uvicorn.Config(
            app, log_level="critical", access_log=False, ws="none", timeout_graceful_shutdown=1
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            app.state.watch.end()
            server.should_exit = True
            thread.join(timeout=10)
