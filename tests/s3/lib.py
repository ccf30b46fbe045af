"""moto as the S3 server, dtrain as its client: what the tests of this folder share."""

import contextlib
import itertools
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import urllib.request

import boto3

KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true"}
PATIENCE = 60  # seconds that a server may take to start on a busy machine


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def moto():
    """A moto_server of its own: yields its URL."""
    port = free_port()
    server = subprocess.Popen([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        end = time.monotonic() + PATIENCE
        while True:
            try:
                urllib.request.urlopen(f"{url}/moto-api/data.json").close()
                break
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)
        yield url
    finally:
        server.kill()
        server.wait()


class NarrowRoad:
    """A road to a server with lanes: each connection is slower than the one before it, so that parts which are
    fetched side by side arrive one by one, and after `most` bytes nothing arrives any more. Who goes by it is surely on
    its way when it is killed, however fast the machine is."""

    def __init__(self, url, most, rate=20 << 20):
        self.server = tuple(url.removeprefix("http://").split(":"))
        self.rate, self.left, self.lock = rate, most, threading.Lock()
        self.door, self.ends = socket.create_server(("127.0.0.1", 0)), []
        self.url = f"http://127.0.0.1:{self.door.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        for lane in itertools.count():
            try:
                near, _ = self.door.accept()
            except OSError:  # closed
                return
            far = socket.create_connection(self.server)
            self.ends += [near, far]
            rate = self.rate * 0.7 ** min(lane, 9)
            for source, target in ((near, far), (far, near)):
                threading.Thread(target=self.carry, args=(source, target, rate), daemon=True).start()

    def carry(self, source, target, rate):
        with contextlib.suppress(OSError):
            while chunk := source.recv(64 << 10):
                time.sleep(len(chunk) / rate if self.has_room(len(chunk)) else PATIENCE)
                target.sendall(chunk)
            target.shutdown(socket.SHUT_WR)

    def close(self):
        """The server need not wait for those who were killed."""
        for end in (self.door, *self.ends):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def has_room(self, size):
        with self.lock:
            self.left -= size
            return self.left >= 0


def kill_when(process, ready):
    """kill -9 as soon as ready(); the process must not end before."""
    while not ready():
        assert process.poll() is None, process.communicate()
        time.sleep(0.005)
    process.kill()
    process.wait()


class World:
    """One test's folder, bucket and program."""

    def __init__(self, program, url, folder):
        self.program, self.url, self.folder = program, url, pathlib.Path(folder)
        self.client = boto3.client("s3", endpoint_url=url, region_name="us-east-1", aws_access_key_id="key",
                                   aws_secret_access_key="secret")
        self.bucket = f"bucket-{os.getpid()}-{time.monotonic_ns()}"
        self.client.create_bucket(Bucket=self.bucket)
        self.environment = {**os.environ, **KEYS, "AWS_ENDPOINT_URL": url, "HOME": str(self.folder),
                            "XDG_CACHE_HOME": str(self.folder / "cache")}

    def s3(self, key):
        return f"s3://{self.bucket}/{key}"

    def start(self, *words, url=None):
        environment = {**self.environment, "AWS_ENDPOINT_URL": url} if url else self.environment
        return subprocess.Popen([self.program, *map(str, words)], env=environment, cwd=self.folder,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def kill_underway(self, *words, when, most=60 << 20):
        """Starts the program on a narrow road and ends it with kill -9 as soon as when()."""
        road = NarrowRoad(self.url, most)
        kill_when(self.start(*words, url=road.url), when)
        road.close()

    def run(self, *words, status=0):
        process = self.start(*words)
        out, error = process.communicate(timeout=600)
        assert process.returncode == status, f"{words}: status {process.returncode}\n{out}{error}"
        return out if status == 0 else error

    def json(self, *words):
        return json.loads(self.run(*words, "--json"))

    def get(self, key):
        return self.client.get_object(Bucket=self.bucket, Key=key)["Body"].read()

    def put(self, key, content):
        self.client.put_object(Bucket=self.bucket, Key=key, Body=content)

    def delete(self, key):
        self.client.delete_object(Bucket=self.bucket, Key=key)

    def keys(self):
        return [entry["Key"] for entry in self.client.list_objects_v2(Bucket=self.bucket).get("Contents", [])]

    def fragments(self):
        return self.client.list_multipart_uploads(Bucket=self.bucket).get("Uploads", [])


def run_tests(tests, program):
    """Calls every function with a World of its own; prints a line for each and the sum. True if all passed."""
    passed = failed = 0
    with moto() as url:
        for test in tests:
            with tempfile.TemporaryDirectory() as folder:
                try:
                    test(World(program, url, folder))
                    print(f"ok {test.__name__}", flush=True)
                    passed += 1
                except Exception:
                    print(f"FAIL {test.__name__}\n{traceback.format_exc()}", flush=True)
                    failed += 1
    print(f"{passed} passed, {failed} failed")
    return failed == 0
