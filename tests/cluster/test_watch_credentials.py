"""A watch whose credentials end while it runs: it stays, and goes on once they are renewed."""

import os
import signal
import time

import pytest
import test_credentials
from test_credentials import document, person  # noqa: F401

SHORT = 3  # seconds that keys live
PATIENCE = 120
REQUESTS_OF_A_LOOK = 3  # more than one look makes: after so many, one look has ended


class Watch:
    """`cluster watch demo --heal --no-head` of the person, and what it says."""

    def __init__(self, person):  # noqa: F811
        self.cloud, self.log = person.cloud, person.cloud.folder / "watch.log"
        person.write(".aws/config", person.config + person.sessions)
        person.write(".aws/credentials", person.credentials)
        with open(self.log, "wb") as log:
            self.process = person.cloud.start("cluster", "watch", "demo", "--heal", "--no-head", "--every", 1, streams=log,
                                              **person.words)

    def said(self):
        return self.log.read_text()

    def wait_for(self, condition, what):
        end = time.monotonic() + PATIENCE
        while not condition():
            assert self.process.poll() is None, f"the watch ended: {self.said()}"
            assert time.monotonic() < end, f"{what}: not within {PATIENCE} s: {self.said()}"
            time.sleep(0.1)

    def wait_for_looks(self, count):
        wanted = self.cloud.proxy.count("DescribeInstances") + count
        self.wait_for(lambda: self.cloud.proxy.count("DescribeInstances") >= wanted, "it looks")

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.process.wait(PATIENCE)


@pytest.fixture
def watch(cloud, up, person, monkeypatch):  # noqa: F811
    """start(prepare): in an account with cluster demo, with keys that live for seconds, of which prepare() makes the first."""
    monkeypatch.setattr(test_credentials, "AHEAD", SHORT)
    watches = []

    def start(prepare=lambda: None):
        up(count=0)
        prepare()
        watches.append(Watch(person))
        watches[0].wait_for_looks(REQUESTS_OF_A_LOOK)
        return watches[0]
    yield start
    for one in watches:
        one.end()


def replace(path, text):
    path.with_suffix(".new").write_text(text)
    os.replace(path.with_suffix(".new"), path)


def test_a_sign_in_that_expires_is_waited_for(watch, person):  # noqa: F811
    person.has_sso()
    running = watch()
    person.has_sso(expires=-1)
    running.wait_for(lambda: "aws sso login --profile p" in running.said(), "it names the command that signs in")
    person.has_sso(expires=3600)
    running.wait_for(lambda: "can be read again" in running.said(), "it goes on")
    assert running.said().count("cannot be read at the moment") == 1
    running.wait_for_looks(1)


def test_a_command_that_fails_is_asked_again(watch, person):  # noqa: F811
    person.has_command()
    said = person.home / "said"
    running = watch(lambda: replace(said, document("command", 2 * SHORT)))  # which are to last for a look
    said.unlink()
    running.wait_for(lambda: "its credential_process failed" in running.said(), "it says which command failed")
    replace(said, document("command", 3600))
    running.wait_for(lambda: "can be read again" in running.said(), "it goes on")
    running.wait_for_looks(1)


def test_a_watch_that_was_never_signed_in_ends(cloud, up, person):  # noqa: F811
    up(count=0)
    person.has_sso(expires=-1)
    running = Watch(person)
    assert running.process.wait(PATIENCE) == 2 and "aws sso login --profile p" in running.said()
    assert "cannot be read at the moment" not in running.said()
