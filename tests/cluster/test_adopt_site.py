"""`cluster adopt` on machines: dtrain is installed by ssh, through the master where a worker has no public address, and all
that it did is undone by `down`."""

import json
import os
import subprocess

import pytest

if "DTRAIN_CLUSTER_LAB" not in os.environ:
    pytest.skip("machines need namespaces: tests/cluster/run.sh makes them", allow_module_level=True)

from policy import policy_of  # noqa: E402
from stacks import OldStack  # noqa: E402
from test_site import agents, laptop, private  # noqa: E402, F401  (a fixture is found by its name)

ADOPT = ("adopt", "demo", "--stack", "old", "--yes", "--timeout", 120)
FILES = {"/opt/deeplearning/workers": "deeplearning-worker1\n", "/etc/profile.d/deeplearning.sh": "export OLD=1\n",
         "/etc/hosts": "127.0.0.1 localhost\n10.0.1.9 deeplearning-worker1\n"}
LEFT = "ls -d /opt/dtrain /var/lib/dtrain-* /var/lib/cloud/scripts/per-boot/dtrain 2>/dev/null; ps -eo args= | grep '[d]train agent'"


@pytest.fixture
def old(laptop, program):
    """A stack whose machines have booted, with files of the predecessors."""
    cloud = laptop.cloud
    printed = subprocess.run([program, "cluster", "iam-policy", "--json", "--adopt"], check=True, capture_output=True, text=True)
    cloud.proxy.policy = policy_of(printed.stdout, cloud.proxy.account)
    with laptop.machines.changing:  # none boots before its public address is known
        stack = OldStack(cloud)
    for address in addresses(stack):
        laptop.wait_for(lambda: is_up(laptop, address), f"{address} boots")  # noqa: B023
        for path, text in FILES.items():
            laptop.machines.find(address).run("sh", "-c", 'mkdir -p "${0%/*}" && cat >"$0"', path, text=text)
    return stack


def addresses(stack, role=None):
    return [one["PrivateIpAddress"] for one in stack.machines(role).values()]


def is_up(laptop, address):
    there = laptop.machines.find(address)
    return there and not there.is_off() and (there.disk / "booted").exists()


def files_of(machine):
    return {path: machine.run("cat", path, check=False).stdout for path in FILES}


def left_on(machine):
    return machine.run("sh", "-c", LEFT, check=False).stdout


def test_an_adopted_stack_runs_jobs_and_is_given_back_as_it_was(laptop, old):
    """The user's key is known to ~/.ssh/config alone, which the way through the master follows too."""
    cloud, before = laptop.cloud, old.state()
    ssh = cloud.folder / "home/.ssh"
    (ssh / "id_ed25519").rename(ssh / "aws_key")
    (ssh / "config").write_text(f"Host *\n  IdentityFile {ssh / 'aws_key'}\n")
    cloud.cluster(*ADOPT)
    assert agents(cloud.json("status", "demo")) == dict.fromkeys(("head", "w0001", "w0002"), "registered")
    nodes = private(cloud.json("status", "demo")["nodes"])
    assert set(nodes.values()) == set(addresses(old))
    there = [laptop.machines.find(address) for address in nodes.values()]
    laptop.wait_for(lambda: all("DEEPLEARNING_WORKERS_COUNT=3" in files_of(one)["/etc/profile.d/deeplearning.sh"] for one in there),
                    "the nodes know each other")
    said = cloud.run("run", "--cluster", "demo", "--", "hostname").stdout
    assert all(said.count(one.name) == 1 for one in there), said

    there[1].run("sh", "-c", "echo 10.9.9.9 own >>/etc/hosts")
    cloud.cluster("down", "demo", "--yes")
    assert [left_on(one) for one in there] == [""] * 3
    for one in there:
        own = "10.9.9.9 own\n" if one is there[1] else ""
        assert files_of(one) == {**FILES, "/etc/hosts": FILES["/etc/hosts"] + own}
    assert old.state() == before and cloud.sweep("demo") == []


def processes_of(machine):
    return machine.run("ps", "-eo", "args=").stdout


def test_the_jobs_of_a_stack_end_before_it_is_given_back(laptop, old):
    cloud = laptop.cloud
    cloud.cluster(*ADOPT)
    for seconds in (86401, 86402):
        cloud.run("launch", "--cluster", "demo", "--detach", "-n", 3, "--", "sleep", seconds)
    there = [laptop.machines.find(address) for address in addresses(old)]
    laptop.wait_for(lambda: any("sleep 86401" in processes_of(one) for one in there), "the first job runs")
    said = cloud.cluster("down", "demo", "--yes").stderr
    assert "could not be stopped first" not in said and not any("sleep 8640" in processes_of(one) for one in there), said
    assert [left_on(one) for one in there] == [""] * 3 and cloud.sweep("demo") == []


def test_a_machine_that_ssh_does_not_reach_is_named_and_left_alone(laptop, old):
    cloud = laptop.cloud
    deaf = laptop.machines.find(addresses(old, "Worker")[1])
    deaf.run("sh", "-c", "pkill -x sshd; rm /usr/sbin/sshd")
    refused = cloud.cluster(*ADOPT, status=3)
    assert f"dtrain is not installed on {name_of(cloud, deaf)}" in refused.stderr and "repeat the command" in refused.stderr
    laptop.wait_for(lambda: list(agents(cloud.json("status", "demo")).values()).count("registered") == 2, "the others register")
    before = len(old.machines())
    cloud.cluster("watch", "demo", "--heal", "--once")
    assert len(old.machines()) == before == len(cloud.of_cluster("demo"))
    kept = cloud.cluster("down", "demo", "--yes").stderr
    assert "dtrain stays installed on" in kept and len(old.machines()) == before and cloud.sweep("demo") == []


def name_of(cloud, machine):
    return next(cloud.tags(one["InstanceId"])["dtrain:node"] for one in cloud.of_cluster("demo")
                if one["PrivateIpAddress"] == machine.address)


def test_a_system_that_cannot_run_dtrain_is_refused_before_anything_changes(laptop, old):
    cloud, before = laptop.cloud, old.state()
    laptop.machines.find(addresses(old, "Worker")[0]).run("sh", "-c", 'rm "$(command -v flock)"')
    cloud.proxy.calls.clear()
    refused = cloud.cluster(*ADOPT, status=2)
    assert "lacks flock" in refused.stderr and "--no-install" in refused.stderr
    assert cloud.proxy.mutating() == [] and old.state() == before


def test_a_stopped_stack_is_started_before_it_is_given_back(laptop, old):
    cloud = laptop.cloud
    cloud.cluster(*ADOPT)
    cloud.cluster("stop", "demo", "--yes")
    assert "dtrain cluster start demo" in cloud.cluster("down", "demo", "--yes", status=2).stderr
    cloud.cluster("start", "demo", "--yes", "--timeout", 120)
    told = json.loads(cloud.cluster("down", "demo", "--yes", "--json").stdout)
    assert len(told["given_back"]) == 3 and told["leftover"] == []
    for address in addresses(old):
        machine = laptop.machines.find(address)
        files = files_of(machine)
        assert left_on(machine) == "" and "written by dtrain" not in files.pop("/etc/hosts")  # the lab writes it at each boot
        assert all(FILES[path] == text for path, text in files.items())
