"""A program: a model hub that holds one model, or breaks off a download; prints its port."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

FOLDER, HOW = Path(sys.argv[1]), sys.argv[2]
COMMIT = "1" * 40


def oid(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()  # noqa: S324 -- as git names files


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer(with_body=True)

    def do_HEAD(self):
        self.answer(with_body=False)

    def answer(self, *, with_body):
        if self.path.startswith("/api/models/owner/model/tree/"):
            files = [
                {"type": "file", "path": path.name, "size": path.stat().st_size, "oid": oid(path.read_bytes())}
                for path in FOLDER.iterdir()
            ]
            return self.send(json.dumps(files).encode(), with_body)
        if self.path.startswith("/api/models/owner/model/"):
            names = [path.name for path in FOLDER.iterdir()]
            info = {"id": "owner/model", "sha": COMMIT, "siblings": [{"rfilename": name} for name in names]}
            return self.send(json.dumps(info).encode(), with_body)
        path = FOLDER / self.path.rpartition("/")[2]
        if self.path.startswith("/owner/model/resolve/") and path.is_file():
            return self.send(path.read_bytes(), with_body)
        self.send_response(404)
        self.send_header("content-length", "0")
        self.end_headers()
        return None

    def send(self, content, with_body):
        self.send_response(200)
        self.send_header("content-length", str(len(content)))
        self.send_header("etag", f'"{oid(content)}"')
        self.send_header("x-repo-commit", COMMIT)
        self.end_headers()
        if with_body:
            breaks = HOW == "breaks" and len(content) > 1000
            self.wfile.write(content[: len(content) // 2] if breaks else content)
            self.wfile.flush()
            if breaks:
                os._exit(1)

    def log_message(self, *arguments):
        pass


with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
    print(server.server_port, flush=True)
    server.serve_forever()
