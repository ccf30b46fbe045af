"""`cloud`: a fresh account (cloud.py) for each test. At the end of a test, all signatures must have been valid."""

import os
import pathlib

import pytest
from cloud import Cloud, UP
from account import forget_everything, moto
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


@pytest.fixture
def cloud(account, shared_proxy, tmp_path):
    forget_everything(account)
    shared_proxy.fresh()
    program = os.environ.get("DTRAIN", pathlib.Path(__file__).parents[2] / "build/release/dtrain")
    yield Cloud(shared_proxy, account, tmp_path, str(program))
    assert shared_proxy.wrong == []


@pytest.fixture
def demo(cloud):
    """up(words): makes cluster demo with two workers."""
    image = cloud.image()

    def up(*words, **how):
        return cloud.json("up", "demo", "-w", 2, "--ami", image, *UP, *words, **how)
    return up
