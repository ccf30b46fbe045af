#!/usr/bin/env python3
"""An S3 server that checks every signature strictly and misbehaves on request: s3_server.py [ADDRESS] prints its port and
serves until stdin ends.

Its objects are /BUCKET/KEY, and the same below /storage/v1/s3, as behind a gateway. The key's first word says how it
misbehaves (s3_faults.py), anything else is served as it should be. The bucket "elsewhere" lives in eu-west-1, all others
in us-east-1. Lists of uploads in buckets "unsaid..." do not tell which checksums their parts have, as on servers other
than AWS. Lists of the bucket "endless" ignore where they are to go on, those of "tokenless" do not say it. A HEAD of
"boasts/..." states a size that no memory holds. Objects "unversioned/..." have no ETag, and "dated/..." have
Last-Modified in its place. Counts are kept per path.
"""
import base64
import email.utils
import hashlib
import hmac
import http.server
import json
import re
import socket
import struct
import sys
import threading
import time
import urllib.parse
import zlib

from key_giver import KeyGiver
from s3_faults import Faults

SECRETS = {"key": "secret", "fresh": "secret"}
EXPIRED_TOKENS = {"old"}
REGIONS = {"elsewhere": "eu-west-1"}
SKEW = 20 * 60  # seconds that this server's clock is ahead, for the keys "skewed/..."
TOLERANCE = 300
BOAST = 300_000_000_000  # bytes
GATEWAY = "/storage/v1/s3"


class Refusal(Exception):
    def __init__(self, status, code, message="", headers=()):
        super().__init__(code)
        self.status, self.code, self.message, self.headers = status, code, message, headers


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 255] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def crc_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


CRC_TABLE = crc_table()


def checksum(data):
    return base64.b64encode(struct.pack(">I", crc32c(data))).decode()


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def encode(text, safe=""):
    return urllib.parse.quote(text, safe=safe + "-_.~")


def verify(method, target, headers, body, now):
    """Raises Refusal unless the signature is what AWS's rules give for these bytes."""
    given = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request, "
                         r"SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})", headers.get("authorization", ""))
    if not given:
        raise Refusal(403, "AccessDenied", "no signature")
    key, date, region, names, signature = given.groups()
    if key not in SECRETS:
        raise Refusal(403, "InvalidAccessKeyId")
    if headers.get("x-amz-security-token") in EXPIRED_TOKENS:
        raise Refusal(400, "ExpiredToken", "The provided token has expired.")
    path, _, query = target.partition("?")
    bucket = path[1:].split("/")[0]
    wanted_region = REGIONS.get(bucket, "us-east-1")
    if region != wanted_region:
        raise Refusal(301, "PermanentRedirect", f"the bucket is in {wanted_region}",
                      [("x-amz-bucket-region", wanted_region)])
    stamp = headers.get("x-amz-date", "")
    signed_at = time.mktime(time.strptime(stamp, "%Y%m%dT%H%M%SZ")) - time.timezone
    if abs(signed_at - now) > TOLERANCE:
        raise Refusal(403, "RequestTimeTooSkewed")
    must_sign = ["host"] + [name for name in headers if name.startswith("x-amz-") or name == "content-type"]
    if names.split(";") != sorted(names.split(";")) or set(must_sign) - set(names.split(";")):
        raise Refusal(403, "AccessDenied", "headers are not signed")
    payload = headers.get("x-amz-content-sha256", "")
    if payload != sha256(body):
        raise Refusal(400, "XAmzContentSHA256Mismatch")
    pairs = sorted((encode(urllib.parse.unquote(name)), encode(urllib.parse.unquote(value)))
                   for part in query.split("&") if part for name, _, value in [part.partition("=")])
    canonical = "\n".join([method, encode(urllib.parse.unquote_to_bytes(path), "/"),
                           "&".join(f"{name}={value}" for name, value in pairs),
                           *[f"{name}:{' '.join(headers[name].split())}" for name in names.split(";")], "", names, payload])
    to_sign = "\n".join(["AWS4-HMAC-SHA256", stamp, f"{date}/{region}/s3/aws4_request", sha256(canonical.encode())])
    derived = ("AWS4" + SECRETS[key]).encode()
    for part in (date, region, "s3", "aws4_request", to_sign):
        derived = hmac.new(derived, part.encode(), hashlib.sha256).digest()
    if derived.hex() != signature:
        raise Refusal(403, "SignatureDoesNotMatch", canonical)


class Handler(http.server.BaseHTTPRequestHandler, Faults, KeyGiver):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # a body behind its head would wait for the client's delayed acknowledgement
    word = ""

    def log_message(self, *_):
        pass

    def serve(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        target = self.path
        if target.startswith("/_count/"):
            return self.send(str(Server.counts.get(target[len("/_count"):], 0)).encode())
        if self.command == "POST" and target == "/":
            return self.give_role(urllib.parse.parse_qs(body.decode()))
        path, _, query = target.partition("?")
        if self.command == "POST" and path == "/token":
            return self.renew_sign_in(json.loads(body))
        if path == "/federation/credentials" and "role_name=moved" in query:
            return self.send(b"", 302, [("Location", target.replace("moved", "trainer"))])
        if path == "/federation/credentials":
            return self.give_keys(dict(urllib.parse.parse_qsl(query)))
        path = path.removeprefix(GATEWAY)
        self.bucket, _, self.key = urllib.parse.unquote(path[1:]).partition("/")
        self.query = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        self.path = path
        self.word = self.key.split("/")[0].replace("-", "_")
        try:
            if self.bucket != "public" or "Authorization" in self.headers:
                headers = {name.lower(): value for name, value in self.headers.items()}
                verify(self.command, target, headers, body, self.now())
            self.answer(body)
        except Refusal as refusal:
            self.refuse(refusal.status, refusal.code, refusal.message, refusal.headers)
        return None

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = serve

    def answer(self, body):
        with Server.lock:
            count = Server.counts[self.path] = Server.counts.get(self.path, 0) + (self.command == "GET")
        if self.command == "GET" and hasattr(Faults, self.word) and getattr(self, self.word)(count):
            return
        if self.command in ("GET", "HEAD") and self.key and not self.query.keys() & {"uploadId"}:
            return self.get_object()
        getattr(self, "on_" + self.command.lower())(body)

    # Objects.

    def object(self):
        if self.path not in Server.objects:
            raise Refusal(404, "NoSuchKey", "The specified key does not exist.")
        return Server.objects[self.path]

    def etag(self):
        """Computed once, as every range of a large object asks for it, and kept without comparing contents."""
        content = self.object()
        if Server.etags.get(self.path, (None,))[0] is not content:
            Server.etags[self.path] = (content, f'"{hashlib.md5(content).hexdigest()}"')
        return Server.etags[self.path][1]

    def version(self):
        if self.word == "dated":
            seconds = zlib.crc32(self.object())  # another content has another time
            return [("Last-Modified", email.utils.formatdate(seconds, usegmt=True))]
        return [] if self.word == "unversioned" else [("ETag", self.etag())]

    def get_object(self):
        content = self.object()
        if self.headers.get("If-Match", self.etag()) != self.etag():
            raise Refusal(412, "PreconditionFailed")
        headers = self.version()
        if self.headers.get("x-amz-checksum-mode") and not self.word.endswith("_plain"):
            headers.append(("x-amz-checksum-crc32c", Server.checksums.get(self.path, "")))
        if "partNumber" in self.query and self.word != "ignores_part_numbers":
            return self.send(b"", 206, headers, length=Server.part_sizes.get(self.path, len(content)))
        if "Range" in self.headers and content:
            return self.send_range()
        is_boast = self.word == "boasts" and self.command == "HEAD"
        return self.send(content, headers=headers, length=BOAST if is_boast else None)

    def range(self):
        size = len(self.object())
        first, last = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", f"bytes=0-{size - 1}")).groups()
        return int(first), min(int(last), size - 1)

    def range_headers(self, first, last):
        return [("Content-Range", f"bytes {first}-{last}/{len(self.object())}"), *self.version()]

    def send_range(self, half=False, honest=False):
        first, last = self.range()
        body = self.object()[first:last + 1]
        sent = body[:len(body) // 2] if half else body
        return self.send(sent, 206, self.range_headers(first, last), length=len(sent if honest else body))

    def on_put(self, body):
        if self.word.startswith("busy_put") and not Server.seen_once(self.path + str(self.query)):
            raise Refusal(503, "SlowDown")
        if self.word == "slow_put" and not self.key.endswith(".trial"):
            time.sleep(1)
        if self.word == "denied_put":
            raise Refusal(403, "AccessDenied")
        given = self.headers.get("x-amz-checksum-crc32c")
        if given and given != checksum(body):
            raise Refusal(400, "BadDigest")
        if "uploadId" in self.query:
            upload = self.upload()
            number = int(self.query["partNumber"])
            if self.word == "denied_part" and number == 2:
                raise Refusal(403, "AccessDenied")
            if given and upload["algorithm"] != "CRC32C":
                raise Refusal(400, "InvalidRequest", "the upload was begun with other checksums")
            upload["parts"][number] = body
            return self.send(b"", headers=[("ETag", f'"{hashlib.md5(body).hexdigest()}"')])
        Server.objects[self.path] = body
        Server.checksums[self.path] = given or ""
        return self.send(b"", headers=[("ETag", self.etag())])

    def on_delete(self, _):
        if self.word == "denied_removal":
            raise Refusal(403, "AccessDenied")
        if "uploadId" in self.query:
            self.upload()
            del Server.uploads[self.query["uploadId"]]
        else:
            Server.objects.pop(self.path, None)
        self.send(b"", 204)

    # Lists and uploads in parts.

    def upload(self):
        if self.query["uploadId"] not in Server.uploads:
            raise Refusal(404, "NoSuchUpload")
        return Server.uploads[self.query["uploadId"]]

    def on_get(self, _):
        if "uploadId" in self.query:
            own = self.upload()["algorithm"] == "CRC32C"
            parts = "".join(f"<Part><PartNumber>{number}</PartNumber><Size>{len(body)}</Size>"
                            f'<ETag>"{hashlib.md5(body).hexdigest()}"</ETag>'
                            + (f"<ChecksumCRC32C>{checksum(body)}</ChecksumCRC32C>" if own else "") + "</Part>"
                            for number, body in sorted(self.upload()["parts"].items()))
            return self.send_xml(f"<ListPartsResult><IsTruncated>false</IsTruncated>{parts}</ListPartsResult>")
        if "uploads" in self.query:
            uploads = "".join(f"<Upload><Key>{upload['key']}</Key><UploadId>{name}</UploadId>"
                              f"<Initiated>{upload['begun']}</Initiated>{self.algorithm_of(upload)}</Upload>"
                              for name, upload in Server.uploads.items() if upload["bucket"] == self.bucket
                              and upload["key"].startswith(self.query.get("prefix", "")))
            return self.send_xml(f"<ListMultipartUploadsResult>{uploads}</ListMultipartUploadsResult>")
        prefix = f"/{self.bucket}/"
        keys = sorted(key for path in Server.objects for key in [urllib.parse.unquote(path[len(prefix):])]
                      if path.startswith(prefix) and key.startswith(self.query.get("prefix", "")))
        after = self.query.get("continuation-token", "") if self.bucket != "endless" else ""
        rest = [key for key in keys if key > after]
        page = rest[:3]  # short pages, so that every test turns them
        entries = "".join(f"<Contents><Key>{encode(key, '/')}</Key><Size>{len(Server.objects[prefix + encode(key, '/')])}"
                          f"</Size><ETag>e</ETag></Contents>" for key in page)
        more = len(rest) > len(page)
        says_how = more and self.bucket != "tokenless"
        token = f"<NextContinuationToken>{page[-1]}</NextContinuationToken>" if says_how else ""
        return self.send_xml(f"<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>{str(more).lower()}"
                             f"</IsTruncated>{token}{entries}</ListBucketResult>")

    def algorithm_of(self, upload):
        is_said = upload["algorithm"] and not self.bucket.startswith("unsaid")
        return f"<ChecksumAlgorithm>{upload['algorithm']}</ChecksumAlgorithm>" if is_said else ""

    def on_post(self, body):
        if "uploads" in self.query:
            with Server.lock:
                name = f"upload-{len(Server.counts)}-{time.monotonic_ns()}"
                Server.uploads[name] = {"bucket": self.bucket, "key": self.key, "parts": {},
                                        "begun": f"{time.time():020.6f}",
                                        "algorithm": self.headers.get("x-amz-checksum-algorithm", "")}
            return self.send_xml("<InitiateMultipartUploadResult><UploadId>"
                                 f"{name}</UploadId></InitiateMultipartUploadResult>")
        if self.fail_at_last():
            return None
        if self.word == "slow_at_last":
            self.begin_slowly()
        parts = self.upload()["parts"]
        numbers = [int(number) for number in re.findall(rb"<PartNumber>(\d+)<", body)]
        if numbers != sorted(parts):
            raise Refusal(400, "InvalidPart")
        Server.objects[self.path] = b"".join(parts[number] for number in numbers)
        Server.part_sizes[self.path] = len(parts[1])
        sums = b"".join(struct.pack(">I", crc32c(parts[number])) for number in numbers)
        Server.checksums[self.path] = f"{checksum(sums)}-{len(numbers)}"
        del Server.uploads[self.query["uploadId"]]
        if self.word.startswith("lost_answer") and not Server.seen_once(self.path):
            return self.hang_up()
        if self.word == "slow_at_last":
            return self.wfile.write(b"<CompleteMultipartUploadResult/>")
        return self.send_xml("<CompleteMultipartUploadResult/>")

    # Answers.

    def now(self):
        return time.time() + (SKEW if self.word == "skewed" else 0)

    def send(self, body, status=200, headers=(), length=None):
        self.send_response_only(status)
        self.send_header("Date", time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(self.now())))
        self.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
            self.wfile.flush()
        return True

    def send_xml(self, text):
        return self.send(f'<?xml version="1.0" encoding="UTF-8"?>{text}'.encode())

    def refuse(self, status, code, message="", headers=()):
        body = f"<Error><Code>{code}</Code><Message>{message}</Message><RequestId>R1</RequestId></Error>".encode()
        return self.send(body, status, [("Content-Type", "application/xml"), *headers])

    def hang_up(self):
        self.close_connection = True
        return True

    def reset(self):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        return self.hang_up()


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64
    lock = threading.Lock()
    objects, etags, checksums, part_sizes, uploads, counts, completions, seen = {}, {}, {}, {}, {}, {}, {}, set()

    @classmethod
    def seen_once(cls, what):
        with cls.lock:
            before = what in cls.seen
            cls.seen.add(what)
            return before

    def handle_error(self, *_):
        """A client that went away is what some tests are about."""


if __name__ == "__main__":
    server = Server((sys.argv[1] if sys.argv[1:] else "127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()
