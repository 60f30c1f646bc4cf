#!/usr/bin/env python3
# Copyright (c) 2026, gpuserve contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An engine that costs nothing: what was asked before gets the answer of before, the rest is passed on to the real one.

On loopback only, until it is killed. Arguments: the port, and the real engine's address and port.
"""

from __future__ import annotations

import sys
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT, ENGINE, ENGINE_PORT = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
# By method, path and body: status, type and body of the answer.
KEPT: dict[tuple[str, str, bytes], tuple[int, str, bytes]] = {}


class Replay(BaseHTTPRequestHandler):
    """One connection."""

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        asked = (self.command, self.path, body)
        if asked not in KEPT:
            engine = HTTPConnection(ENGINE, ENGINE_PORT)
            engine.request(self.command, self.path, body, {"Content-Type": "application/json"})
            told = engine.getresponse()
            KEPT[asked] = (told.status, told.getheader("Content-Type", ""), told.read())
            engine.close()
        status, kind, content = KEPT[asked]
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = answer

    def log_message(self, format: str, *args: object) -> None:
        """Nobody reads it."""


class Server(ThreadingHTTPServer):
    """As many at once as there are hosts."""

    request_queue_size = 128


Server(("127.0.0.1", PORT), Replay).serve_forever()
