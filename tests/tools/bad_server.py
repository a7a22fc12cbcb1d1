"""A program: an HTTP server that misbehaves in the way its argument names, and prints its port."""

from __future__ import annotations

import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HOW = sys.argv[1]
ERRORS = {
    "unauthorized": (401, '{"error": {"message": "Invalid API Key", "code": 401}}'),
    "missing": (404, "not found"),
    "broken": (500, '{"detail": "out of memory"}'),
    "busy": (503, '{"error": {"message": "Loading model", "code": 503}}'),
    "page": (200, "<html>Welcome to nginx</html>"),
    "empty": (200, ""),
    "list": (200, "[]"),
    "text": (200, '{"content": "Hello", "tokens_evaluated": 3, "generation_settings": {}}'),
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        if HOW == "slow":
            time.sleep(600)
        if HOW == "dies":  # in the middle of its reply
            self.send_response(200)
            self.send_header("content-length", "1000")
            self.end_headers()
            self.wfile.write(b'{"tokens": [1, 2')
            self.wfile.flush()
            os._exit(1)
        status, body = ERRORS[HOW]
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *arguments):
        pass


with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
    print(server.server_port, flush=True)
    server.serve_forever()
