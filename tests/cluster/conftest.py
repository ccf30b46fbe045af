"""`cloud`: a fresh account (cloud.py) for each test. At the end of a test, all signatures must have been valid, and no call
may have lacked a right of `cluster iam-policy`."""

import os
import pathlib
import subprocess

import pytest
from cloud import Cloud, UP
from account import forget_everything, moto
from places import ALL, Places, WORDS
from policy import policy_of
from proxy import Proxy


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes long; run.sh --slow runs it")


@pytest.fixture(scope="session")
def account():
    with moto() as url:
        yield url


@pytest.fixture(scope="session")
def shared_proxy(account):
    proxy = Proxy(account)
    yield proxy
    proxy.close()


@pytest.fixture(scope="session")
def program():
    return str(os.environ.get("DTRAIN", pathlib.Path(__file__).parents[2] / "build/release/dtrain"))


@pytest.fixture(scope="session")
def policy(program, shared_proxy):
    """What a user of the cluster commands may do; tests name the roles R and P."""
    roles = ",".join(f"arn:aws:iam::123456789012:role/{name}" for name in ("R", "P"))
    printed = subprocess.run([program, "cluster", "iam-policy", "--json", "--pass-role", roles], check=True, capture_output=True,
                             text=True)
    return policy_of(printed.stdout, shared_proxy.account)


@pytest.fixture
def cloud(account, shared_proxy, policy, program, tmp_path):
    shared_proxy.rest()
    forget_everything(account)
    shared_proxy.fresh()
    shared_proxy.policy = policy
    yield Cloud(shared_proxy, account, tmp_path, program)
    assert shared_proxy.wrong == []
    assert shared_proxy.denied == []


@pytest.fixture
def demo(cloud):
    """up(words): makes cluster demo with two workers."""
    image = cloud.image()

    def up(*words, **how):
        return cloud.json("up", "demo", "-w", 2, "--ami", image, *UP, *words, **how)
    return up


@pytest.fixture
def up(cloud):
    """run(words): `cluster up demo`, with two workers unless said otherwise; the finished process."""
    image = cloud.image()

    def run(*words, status=0, count=2):
        return cloud.cluster("up", "demo", "-w", count, "--ami", image, *UP, *words, status=status)
    return run


@pytest.fixture
def key(cloud):
    """The user's own key."""
    folder = cloud.folder / "home" / ".ssh"
    folder.mkdir()
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "id_ed25519"], check=True)
    return (folder / "id_ed25519.pub").read_text().strip()


@pytest.fixture
def places(cloud):
    return Places(cloud)


@pytest.fixture
def regions(cloud):
    """run(words): `cluster up demo` in the three regions; the finished process."""
    def run(*words, status=0, where=ALL):
        return cloud.cluster("up", "demo", *WORDS, "--region", where, *words, status=status)
    return run
