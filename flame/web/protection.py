"""Answer requests of flame's own page only, and tell the browser what that page may do."""

from __future__ import annotations

from aiohttp import web
from aiohttp.typedefs import Handler
from yarl import URL

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""For every answer. The address of the page is its secret: no other page may learn it."""


@web.middleware
async def refuse_strangers(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse with 403 what a page of another origin has the browser ask.

    The host has to be this machine's loopback, under any port (``ssh -L`` takes another one): a
    page whose own name suddenly resolves to 127.0.0.1 cannot read answers then.
    """
    if not _is_loopback(request.host):
        raise web.HTTPForbidden(text="flame answers as localhost and 127.0.0.1 only")
    origin = request.headers.get("Origin")
    is_socket = request.headers.get("Upgrade", "").lower() == "websocket"
    if origin is None and is_socket:
        raise web.HTTPForbidden(text="flame connects to its own page only")
    if origin is not None and not _is_same_host(origin, request.host):
        raise web.HTTPForbidden(text="flame answers its own page only")
    return await handler(request)


def _is_loopback(host: str) -> bool:
    try:
        return URL(f"http://{host}").host in _LOOPBACK
    except ValueError:
        return False


def _is_same_host(origin: str, host: str) -> bool:
    try:
        return URL(origin).authority == URL(f"http://{host}").authority
    except ValueError:
        return False


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Add what the browser has to know of every answer; a page brings a policy of its own."""
    for name, value in _HEADERS.items():
        response.headers[name] = value
    response.headers.setdefault("Content-Security-Policy", "default-src 'none'")


def content_security_policy(nonce: str) -> str:
    """Write the policy of the page whose own script carries ``nonce``: nothing from elsewhere.

    xterm.js, which draws the terminal, writes styles as it runs.
    """
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src 'self' 'nonce-{nonce}'",
            "style-src 'self' 'unsafe-inline'",
            "font-src 'self'",
            "img-src 'self' data:",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )
