"""Run moto's S3 on a port of its own: prints that, and a line for every request."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

_moto = import_module("moto.server")
_serving = import_module("werkzeug.serving")
_APP = _moto.DomainDispatcherApplication(_moto.create_backend_app)


class _Quiet(_serving.WSGIRequestHandler):  # type: ignore[misc, name-defined]
    def log(self, *_: object) -> None: ...


def _told(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
    """Answer as moto does, once the request has been printed, with the range that it asks for."""
    asked = environ["REQUEST_METHOD"], environ["PATH_INFO"], environ.get("HTTP_RANGE", "whole")
    print(*asked, flush=True)
    answer: Iterable[bytes] = _APP(environ, start)
    return answer


def main() -> None:
    """Serve until the process is ended."""
    server = _serving.make_server("127.0.0.1", 0, _told, threaded=True, request_handler=_Quiet)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
