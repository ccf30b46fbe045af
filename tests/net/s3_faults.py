"""How s3_server.py misbehaves on request: a part of its Handler."""
import time


class Faults:
    """How a GET of "NAME/..." goes wrong; `count` is which GET of this path it is. Each returns whether it answered."""

    def slow_down_once(self, count):
        return count == 1 and self.refuse(503, "SlowDown")

    def slow_down(self, _):
        return self.refuse(503, "SlowDown")

    def internal_once(self, count):
        return count == 1 and self.refuse(500, "InternalError")

    def busy_page_once(self, count):
        return count == 1 and self.send(b"<html>busy", 502)

    def away(self, _):
        """Fails as long as there is an object /bucket/outage."""
        return "/bucket/outage" in self.server.objects and self.refuse(500, "InternalError")

    def denied(self, _):
        return self.refuse(403, "AccessDenied")

    def reset_once(self, count):
        return count == 1 and self.send_range(half=True) and self.reset()

    def truncated_once(self, count):
        return count == 1 and self.send_range(half=True) and self.hang_up()

    def truncated(self, _):
        return self.send_range(half=True) and self.hang_up()

    def short_once(self, count):
        """Half of what was asked for, in an answer that claims no more."""
        return count == 1 and self.send_range(half=True, honest=True)

    def short(self, _):
        """Nothing at all of what was asked for, every time."""
        first, last = self.range()
        return self.send(b"", 206, self.range_headers(first, last), length=0)

    def drip_once(self, count):
        if count > 1:
            return False
        first, last = self.range()
        self.send(b"", 206, self.range_headers(first, last), length=last - first + 1)
        for byte in self.object()[first:first + 300]:
            self.wfile.write(bytes([byte]))
            self.wfile.flush()
            time.sleep(0.1)
        return self.hang_up()

    def replaced(self, count):
        if count == 2:
            self.server.objects[self.path] = self.server.objects[self.path][::-1]
        return False

    replaced_plain = replaced  # of a server without checksums

    def replaced_unsaid(self, count):
        """Replaced, at a server that knows no If-Match."""
        if count == 2:
            self.server.objects[self.path] = self.server.objects[self.path][::-1]
        del self.headers["If-Match"]
        return False

    def no_ranges(self, _):
        return self.send(self.object(), headers=[("ETag", self.etag())])

    def huge_without_ranges(self, _):
        """All of a tebibyte, whatever part was asked for, until the client has had enough."""
        self.send(b"", headers=[("ETag", '"huge"')], length=1 << 40)
        while True:
            self.wfile.write(bytes(1 << 16))

    def slow(self, _):
        time.sleep(0.05)
        return False

    def begin_slowly(self):
        """The head of an answer, and blanks while the server works. What follows ends with the connection."""
        self.send_response_only(200)
        self.send_header("Connection", "close")
        self.end_headers()
        for _ in range(20):
            self.wfile.write(b" ")
            self.wfile.flush()
            time.sleep(0.2)

    def fail_at_last(self):
        """How the completion of an upload goes wrong. Returns whether it did."""
        count = self.server.completions[self.path] = self.server.completions.get(self.path, 0) + 1
        if self.word == "fails_at_last":
            return self.send_xml("<Error><Code>InvalidPart</Code><Message>no such part</Message></Error>")
        if self.word == "fails_twice_at_last" and count <= 2:
            return self.send_xml("<Error><Code>InternalError</Code><Message>try again</Message></Error>")
        if self.word.startswith("forgotten") and count > 1:
            del self.server.uploads[self.query["uploadId"]]
            return self.refuse(404, "NoSuchUpload")
        return False
