"""A moto_server that plays the account of the tests, and boto3's clients of it."""

import contextlib
import functools
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import boto3
from moto.utilities.utils import load_resource

PATIENCE = 120  # seconds for its start on a busy machine
STRICT = {"MOTO_ENABLE_AMI_VALIDATION": "true", "MOTO_EC2_ENABLE_INSTANCE_TYPE_VALIDATION": "true",
          "MOTO_ENABLE_KEYPAIR_VALIDATION": "true"}


REGION = "us-east-1"
IMAGES = 3  # of Amazon's: with the 1,300 that moto knows, it took three times as long
MAKING = threading.Lock()  # boto3 makes one client at a time


def client_of(url, service, region=""):
    """boto3's, of the account itself. The same one for the same words: to make one takes longer than to use it."""
    with MAKING:
        return made_client(url, service, region or REGION)


@functools.cache
def made_client(url, service, region):
    return boto3.client(service, endpoint_url=url, region_name=region, aws_access_key_id="test", aws_secret_access_key="test")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def moto():
    """Yields its URL."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        images = pathlib.Path(folder, "images.json")
        images.write_text(json.dumps(load_resource("ec2/resources/amis.json")[:IMAGES]))
        environment = {**os.environ, **STRICT, "MOTO_AMIS_PATH": str(images)}
        server = subprocess.Popen([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
        yield from while_it_runs(server, f"http://127.0.0.1:{port}")


def while_it_runs(server, url):
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
