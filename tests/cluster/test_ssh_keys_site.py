"""ssh between the user's machine and the head: a head that takes the place of a lost one at the same address, and a key of the
user that cannot be used."""

import os
import pathlib
import subprocess

import pytest

if "DTRAIN_CLUSTER_LAB" not in os.environ:
    pytest.skip("machines need namespaces: tests/cluster/run.sh makes them", allow_module_level=True)

from machines import lab  # noqa: E402
from test_site import SHARED, agents, laptop, private  # noqa: E402, F401


def is_closed(machine):
    """No login succeeds any more; the machine and its other programs stay."""
    machine.run("sh", "-c", "kill $(cat /run/sshd.pid)")
    lab.wait_for(lambda: not machine.answers(), "sshd is gone")


@pytest.mark.slow
def test_a_head_at_the_address_of_a_lost_one_is_no_changed_host(laptop):  # noqa: F811
    """Private clusters: the next head has the address of the lost one, and a host key of its own."""
    cloud = laptop.cloud
    private_words = ("--private", "--subnet", cloud.ec2.describe_subnets()["Subnets"][0]["SubnetId"])
    nodes = laptop.up("-w", 1, *private_words)["nodes"]
    assert {node["public_ip"] for node in nodes} == {""}
    first = laptop.machines.find(private(nodes)["head"])
    cloud.ec2.terminate_instances(InstanceIds=[first.instance["InstanceId"]])
    laptop.wait_for(lambda: not laptop.machines.find(first.address), "the head is gone")

    again = laptop.up("-w", 1, *private_words)["nodes"]
    assert private(again) == private(nodes)
    head = laptop.machines.find(first.address)
    keys = [(machine.disk / "host_key.pub").read_text().split()[1] for machine in (first, head)]
    assert keys[0] != keys[1] and head.instance["InstanceId"] != first.instance["InstanceId"]
    assert set(agents(cloud.json("status", "demo")).values()) == {"registered"}
    for node, machine in (("head", head), ("w0001", laptop.machines.find(private(nodes)["w0001"]))):
        assert cloud.cluster("ssh", "demo", node, "--", "hostname").stdout == f"{machine.name}\n"
    known = (pathlib.Path(cloud.environment["HOME"]) / ".dtrain/clusters/demo/known_hosts").read_text()
    assert {line.split()[0] for line in known.splitlines()} >= {first.instance["InstanceId"], head.instance["InstanceId"]}
    cloud.cluster("ssh", "demo", "--write-config")
    folder = pathlib.Path(cloud.environment["HOME"]) / ".ssh"  # ssh looks elsewhere for it
    line = ["ssh", "-F", folder / "config", "-i", folder / "id_ed25519", "-o", "BatchMode=yes", "demo.head", "hostname"]
    said = subprocess.run(line, env=cloud.environment, capture_output=True, text=True, check=False, timeout=60)
    assert said.stdout == f"{head.name}\n", said.stderr


def end(process):
    process.terminate()
    process.wait(60)


@pytest.mark.slow
def test_up_says_that_the_key_needs_a_passphrase_and_no_agent_has_it(laptop):  # noqa: F811
    cloud, key = laptop.cloud, pathlib.Path(laptop.cloud.environment["HOME"]) / ".ssh/id_ed25519"
    subprocess.run(["ssh-keygen", "-q", "-p", "-P", "", "-N", "secret", "-f", key], check=True)
    cloud.environment.pop("SSH_AUTH_SOCK", None)
    up = laptop.start("up", "cluster", "up", "demo", "-w", 0, "--instance-type", "c5.large", "--ami", cloud.image(), "--shared",
                      SHARED, "--yes")
    laptop.wait_for(lambda: "a login with your public key may fail" in laptop.said("up"), "it warns first")
    laptop.wait_for(lambda: "waits for the head: " in laptop.said("up") and "asks for a passphrase)" in laptop.said("up"),
                    f"it says what it waits for; {laptop.said('up')}")
    assert up.poll() is None
    subprocess.run(["ssh-keygen", "-q", "-p", "-P", "secret", "-N", "", "-f", key], check=True)
    laptop.wait_for(lambda: up.poll() is not None, f"it goes on with a key; {laptop.said('up')}")
    assert up.returncode == 0, laptop.said("up")


@pytest.mark.slow
def test_up_says_that_the_head_takes_no_connection(laptop):  # noqa: F811
    cloud = laptop.cloud
    nodes = private(laptop.up("-w", 0)["nodes"])
    is_closed(laptop.machines.find(nodes["head"]))
    up = laptop.start("up", "cluster", "up", "demo", "-w", 0, "--instance-type", "c5.large", "--ami", cloud.image(), "--shared",
                      SHARED, "--yes")
    laptop.wait_for(lambda: "waits for the head: " in laptop.said("up") and "Connection refused" in laptop.said("up"),
                    f"it says so; {laptop.said('up')}")
    end(up)
