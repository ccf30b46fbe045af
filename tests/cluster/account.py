"""A moto_server that plays the account of the tests."""

import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.request

PATIENCE = 120  # seconds for its start on a busy machine
STRICT = {"MOTO_ENABLE_AMI_VALIDATION": "true", "MOTO_EC2_ENABLE_INSTANCE_TYPE_VALIDATION": "true",
          "MOTO_ENABLE_KEYPAIR_VALIDATION": "true"}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def moto():
    """Yields its URL."""
    port = free_port()
    server = subprocess.Popen([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **STRICT})
    url = f"http://127.0.0.1:{port}"
    try:
        end = time.monotonic() + PATIENCE
        while not answers(url):
            assert server.poll() is None and time.monotonic() < end, "moto_server does not answer"
            time.sleep(0.1)
        yield url
    finally:
        server.kill()
        server.wait()


def answers(url):
    try:
        urllib.request.urlopen(f"{url}/moto-api/data.json").close()
        return True
    except OSError:
        return False


def forget_everything(url):
    urllib.request.urlopen(urllib.request.Request(f"{url}/moto-api/reset", method="POST")).close()
