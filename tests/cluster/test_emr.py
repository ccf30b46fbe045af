"""Clusters of Amazon EMR: one of another user, which `cluster env --emr` adopts."""

import getpass
import ipaddress
import json
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[1:1] = [str(HERE.parent / "launch"), str(HERE.parent / "jobs")]

from faults import Answer  # noqa: E402  (found through the line above)
from sshd import SSHD, Sshd  # noqa: E402

# Each address of the server is a host with its own home folder.
A_HOME_EACH = """#!/bin/sh
cd "{}/$(echo "$SSH_CONNECTION" | cut -d' ' -f3)" || exit
[ "$SSH_ORIGINAL_COMMAND" != internal-sftp ] || exec /usr/lib/openssh/sftp-server
exec sh -c "$SSH_ORIGINAL_COMMAND"
"""


@pytest.fixture
def emr(cloud):
    return cloud.client("emr")


def groups(count, kind="c5.large"):
    return [{"InstanceRole": "MASTER", "InstanceType": "c5.large", "InstanceCount": 1},
            {"InstanceRole": "CORE", "InstanceType": kind, "InstanceCount": count}]


@pytest.fixture
def made(emr):
    """The id of a cluster made without dtrain."""
    def make(count=2, kind="c5.large"):
        return emr.run_job_flow(Name="theirs", ReleaseLabel="emr-7.1.0", ServiceRole="EMR_DefaultRole",
                                JobFlowRole="EMR_EC2_DefaultRole",
                                Instances={"InstanceGroups": groups(count, kind), "KeepJobFlowAliveWhenNoSteps": True},
                                )["JobFlowId"]
    return make


def addresses(emr, identity):
    found = {one["PrivateIpAddress"] for page in emr.get_paginator("list_instances").paginate(ClusterId=identity)
             for one in page["Instances"]}
    return sorted(found, key=ipaddress.ip_address)


def in_pages_of_one(exchange):
    asked = exchange.json()
    page = int(asked.pop("Marker", 0))
    exchange.body = json.dumps(asked).encode()
    answer = exchange.forward()
    listed = json.loads(answer.body)
    listed.pop("Marker", None)
    if page + 1 < len(listed["Instances"]):
        listed["Marker"] = str(page + 1)
    listed["Instances"] = listed["Instances"][page:page + 1]
    answer.body = json.dumps(listed).encode()
    return answer


def at(*places):
    """ListInstances as if the instances were there, and one more that has ended."""
    def list_instances(_):
        found = [{"Ec2InstanceId": f"i-{number}", "InstanceType": "c5.large", "PrivateIpAddress": place,
                  "Status": {"State": "TERMINATED" if place == places[-1] else "RUNNING"}}
                 for number, place in enumerate(places)]
        return Answer(200, json.dumps({"Instances": found}), "application/x-amz-json-1.1")
    return list_instances


def test_env_of_an_emr_cluster_does_what_metadata_setup_did(cloud, emr, made):
    identity = made(11, "g4dn.xlarge")
    said = cloud.cluster("env", "--emr", identity).stdout.splitlines()
    file = cloud.folder / "home/worker_ip_file"
    workers = addresses(emr, identity)
    assert file.read_text().splitlines() == workers and len(workers) == 12
    assert said == ["export DEEPLEARNING_WORKERS_COUNT=12", f"export DEEPLEARNING_WORKERS_PATH={file}",
                    "export DEEPLEARNING_WORKER_GPU_COUNT=1", "export AWS_REGION=us-east-1"]
    assert cloud.proxy.mutating() == []


def test_env_of_an_emr_cluster_reads_all_pages(cloud, emr, made):
    identity = made(3)
    cloud.proxy.on("ListInstances", in_pages_of_one)
    cloud.cluster("env", "--emr", identity, "--workers-file", "list")
    assert (cloud.folder / "list").read_text().splitlines() == addresses(emr, identity)
    assert cloud.proxy.count("ListInstances") == 4


def test_env_needs_one_cluster_and_one_that_runs(cloud, made):
    assert "--emr" in cloud.cluster("env", status=2).stderr
    assert "--emr" in cloud.cluster("env", "demo", "--emr", "j-1", status=2).stderr
    cloud.proxy.on("ListInstances", at("10.0.0.1"))
    assert "no running instance" in cloud.cluster("env", "--emr", made(), status=2).stderr
    assert not (cloud.folder / "home/worker_ip_file").exists()


@pytest.fixture
def hosts(cloud):
    """The folder whose folders are the homes of the hosts 127.0.0.N."""
    if not pathlib.Path(SSHD).exists():
        pytest.skip("no sshd here: install openssh-server")
    homes = cloud.folder / "hosts"
    for number in (9, 10):
        (homes / f"127.0.0.{number}").mkdir(parents=True)
    each = cloud.folder / "each"
    each.write_text(A_HOME_EACH.format(homes))
    each.chmod(0o755)
    server = Sshd(cloud.folder / "sshd", cloud.folder / "home", f"ForceCommand {each}")
    (cloud.folder / "home/.ssh/config").write_text(f"Host 127.*\n  Port {server.port}\n")
    yield homes
    server.end()


def test_everywhere_is_on_every_worker(cloud, hosts):
    cloud.proxy.on("ListInstances", at("127.0.0.10", "127.0.0.9", "127.0.0.11"))
    cloud.cluster("env", "--emr", "j-1", "--everywhere", "--login", getpass.getuser())
    for place in ("127.0.0.9", "127.0.0.10"):
        assert (hosts / place / "worker_ip_file").read_text() == "127.0.0.9\n127.0.0.10\n"


def test_everywhere_names_the_worker_that_has_no_copy(cloud, hosts):
    cloud.proxy.on("ListInstances", at("127.0.0.9", "127.0.0.77", "127.0.0.11"))
    told = cloud.cluster("env", "--emr", "j-1", "--everywhere", "--login", getpass.getuser(), status=3)
    assert "failed on 1 of 2 hosts: 127.0.0.77" in told.stderr
    assert "DEEPLEARNING_WORKERS_COUNT=2" in told.stdout
    assert (hosts / "127.0.0.9/worker_ip_file").exists()
