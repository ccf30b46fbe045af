#!/usr/bin/env python3
"""An HTTP server that misbehaves on request: prints its port, serves until stdin ends.

The path's first word says how, the rest only makes the path unique; counts are kept per path.
"""
import http.server
import re
import sys
import threading
import time

CONTENT = bytes(i * 7 % 251 for i in range(100_000))
HALF = len(CONTENT) // 2


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen = {}  # path -> requests so far

    def log_message(self, *_):
        pass

    def do_GET(self):
        mode = self.path[1:].split("/")[0]
        count = Handler.seen[self.path] = Handler.seen.get(self.path, 0) + 1
        getattr(self, mode.replace("-", "_"), self.missing)(count)

    def send(self, body, status=200, headers=(), length=None):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def send_content(self, etag='"v1"', content=CONTENT, end=None, knows_if_range=True):
        """The content from the Range header's first byte on; `end` cuts the connection there."""
        first = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        wanted = self.headers.get("If-Range", etag) if knows_if_range else etag
        start = int(first[1]) if first and wanted == etag else 0
        headers = [("ETag", etag)]
        if start >= len(content):
            return self.send(b"", 416, [("Content-Range", f"bytes */{len(content)}"), *headers])
        if start:
            headers.append(("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}"))
        self.send(content[start:end], 206 if start else 200, headers, len(content) - start)
        if end is not None:
            self.close_connection = True

    def ok(self, _):
        self.send_content()

    def truncate_once(self, count):
        self.send_content(end=HALF if count == 1 else None)

    def truncate_always(self, _):
        self.send_content(end=HALF)

    def change_midway(self, count):
        if count == 1:
            return self.send_content(content=CONTENT[::-1], end=HALF)
        self.send_content(etag='"v2"')

    def version_2_in_any_case(self, _):
        """Sends the rest of version 2 also where only that of another version was asked for."""
        self.send_content(etag='"v2"', knows_if_range=False)

    def lie_about_ranges(self, count):
        """Ends early, then sends everything with 200 although a range was asked for."""
        if count == 1:
            return self.send_content(end=HALF)
        self.send(CONTENT)

    def rest_of_unknown_position(self, count):
        """Ends early, then answers a range with 206 but without Content-Range."""
        if count == 1 or "Range" not in self.headers:
            return self.send_content(end=HALF if count == 1 else None)
        self.send(CONTENT[HALF:], 206, [("ETag", '"v1"')])

    def busy_once(self, count):
        if count == 1:
            return self.send(b"busy", 503, [("Retry-After", "0")])
        self.send_content()

    def busy(self, _):
        self.send(b"busy", 503)

    def html(self, _):
        self.send(b"\n<!DOCTYPE html><html>Log in</html>", headers=[("Content-Type", "application/octet-stream")])

    def html_type(self, _):
        self.send(b"<p>Moved", headers=[("Content-Type", "text/html; charset=utf-8")])

    def redirect(self, _):
        self.send(b"<html>moved</html>", 302, [("Location", "/ok/redirected"), ("Content-Type", "text/html")])

    def empty(self, _):
        self.send(b"")

    def stall_once(self, count):
        if count > 1:
            return self.send_content()
        self.send(CONTENT[:HALF], headers=[("ETag", '"v1"')], length=len(CONTENT))
        self.wfile.flush()
        time.sleep(30)
        self.close_connection = True

    def count(self, _):
        """How often the path that follows was asked for."""
        self.send(str(Handler.seen.get(self.path[len("/count"):], 0)).encode())

    def missing(self, _):
        self.send(b"<html>not found</html>", 404, [("Content-Type", "text/html")])


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """A client that went away is what some tests are about."""


server = Server(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_address[1], flush=True)
sys.stdin.read()
