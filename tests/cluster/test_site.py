"""The whole life of a cluster on machines: up, train --cluster, add, remove, down, as a user runs them on a laptop."""

import contextlib
import json
import os
import pathlib
import pty
import re
import shutil
import subprocess
import time
import urllib.request

import pytest

if "DTRAIN_CLUSTER_LAB" not in os.environ:
    pytest.skip("machines need namespaces: tests/cluster/run.sh makes them", allow_module_level=True)

from faults import end_at_once, ended_by  # noqa: E402
from machines import Machine, Machines, lab  # noqa: E402

SHARED = str(lab.SHARED)
TRAIN = ["--network", "resnet", "--num-layers", "8", "--width", "8", "--lr", "0.02", "--global-batch", "64", "--logical-shards", "8", "--seed", "1", "--threads", "1"]


class Laptop:
    """The user's machine: keys of AWS, a key for ssh, and dtrain."""

    def __init__(self, cloud):
        self.cloud, self.machines = cloud, Machines(cloud)
        ssh = pathlib.Path(cloud.environment["HOME"]) / ".ssh"
        ssh.mkdir(mode=0o700)
        for name in ("key", "key.pub"):
            shutil.copy(lab.LAB / name, ssh / name.replace("key", "id_ed25519"))
        (ssh / "id_ed25519").chmod(0o600)
        self.running = []
        # In the shared folder, as on the nodes.
        cloud.run("data", "prepare", "shapes", "--force", "--out", lab.SHARED / "d", "--train-count", 480, "--val-count", 60)
        self.training = [*TRAIN, "--data-train", lab.SHARED / "d/shapes_train.rec", "--data-val", lab.SHARED / "d/shapes_val.rec"]

    def up(self, *words):
        return self.cloud.json("up", "demo", "--instance-type", "c5.large", "--ami", self.cloud.image(), "--shared", SHARED,
                               "--yes", "--timeout", 120, *words)

    def start(self, name, *words):
        """A command in the background; its output is in the file of that name."""
        log = open(self.cloud.folder / name, "wb")
        process = subprocess.Popen([self.cloud.program, *map(str, words)], env=self.cloud.environment, cwd=self.cloud.folder,
                                   stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.running.append(process)
        return process

    def said(self, name):
        return (self.cloud.folder / name).read_text()

    def hosts(self):
        """The latest entry of the member log for each host."""
        log = lab.SHARED / "host_worker_log"
        lines = log.read_text().splitlines() if log.exists() else []
        return {line.split()[2]: line.split()[1] for line in lines}

    def members(self):
        return {host for host, word in self.hosts().items() if word == "ADDED"}

    def epochs(self):
        """Those that ended; a job that was stopped leaves a checkpoint of a step too."""
        numbers = [path.stem.rsplit("-", 1)[1] for path in (lab.SHARED / "m").glob("run-*.safetensors")]
        return sorted(int(number) for number in numbers if number.isdigit())

    def weights(self, prefix, epoch):
        return self.cloud.run("inspect", "--json", f"{prefix}-{epoch:04d}.safetensors").stdout

    def wait_for(self, condition, what):
        return self.machines.wait_for(condition, what, 120)

    def down(self):
        for process in self.running:
            if process.poll() is None:
                process.kill()
            process.wait()
        self.machines.down()
        for entry in lab.SHARED.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


@pytest.fixture
def laptop(cloud):
    made = Laptop(cloud)
    yield made
    made.down()


def private(nodes):
    return {node["name"]: node["private_ip"] for node in nodes}


def page_of(url):
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.read().decode()
    except OSError:
        return ""


def test_a_cluster_grows_and_shrinks_while_it_trains_and_the_bits_stay(laptop):
    cloud = laptop.cloud
    nodes = private(laptop.up("-w", 1)["nodes"])
    assert set(nodes) == {"head", "w0001"}
    job = laptop.start("train", "train", "--cluster", "demo", *laptop.training, "--elastic", "--elastic-boundary", "step",
                       "--num-epochs", 100000, "--model-prefix", "m/run")
    laptop.wait_for(lambda: laptop.members() == set(nodes.values()), f"both train; {laptop.said('train')}")

    assert {"export DEEPLEARNING_WORKERS_COUNT=2", f"export EFS_MOUNT={SHARED}"} <= set(
        cloud.cluster("env", "demo").stdout.splitlines())
    assert "agent begins" in cloud.cluster("logs", "demo", "w0001").stdout
    there = laptop.machines.find(nodes["w0001"])
    assert cloud.cluster("ssh", "demo", "w0001", "--", "hostname").stdout == f"{there.name}\n"
    assert cloud.run("run", "--cluster", "demo", "--", "hostname").stdout.count(there.name) == 1

    board = laptop.start("board", "board", "--cluster", "demo", "--port", 6107)
    laptop.wait_for(lambda: '"state":"training"' in page_of("http://localhost:6107/api/board"), f"the head's page is here; {laptop.said('board')}")
    board.terminate()
    assert board.wait(60) == 0 and not page_of("http://localhost:6107/api/board"), laptop.said("board")

    added = private(cloud.json("add", "demo", 1, "--yes")["nodes"])
    newcomer = cloud.instances({"Name": "tag:dtrain:node", "Values": list(added)})[0]
    laptop.wait_for(lambda: added["w0002"] in laptop.members(), f"the third joins; {laptop.said('train')}")
    cloud.cluster("watch", "demo", "--once")
    assert cloud.tags(newcomer["InstanceId"])["elastic_worker_status"] == "ADDED"

    cloud.cluster("remove", "demo", "w0002", "--yes")
    assert laptop.hosts()[added["w0002"]] == "REMOVED"
    assert newcomer["InstanceId"] not in [instance["InstanceId"] for instance in cloud.of_cluster("demo")]

    ended = []  # what the job said of the worker when it was ended

    def watch(exchange):
        if exchange.action == "TerminateInstances":
            ended.append(laptop.hosts()[nodes["w0001"]])
    cloud.proxy.before_call = watch
    cloud.cluster("remove", "demo", "w0001", "--yes", "--force")
    cloud.proxy.before_call = None
    assert ended == ["REMOVED"]

    last = max(laptop.epochs(), default=0)
    laptop.wait_for(lambda: max(laptop.epochs(), default=0) > last, "an epoch ends after that")
    epoch = laptop.epochs()[-1]
    kept = json.loads(laptop.weights(lab.SHARED / "m/run", epoch))["weights_sha256"]
    cloud.run("stop", "--cluster", "demo")
    assert job.wait(120) == 75, laptop.said("train")

    alone = cloud.folder / "alone"
    cloud.run("train", *laptop.training, "--num-epochs", epoch, "--model-prefix", alone)
    assert json.loads(laptop.weights(alone, epoch))["weights_sha256"] == kept
    cloud.cluster("down", "demo", "--yes")
    assert cloud.sweep("demo") == []


def test_r08_a_machine_that_ends_at_once_makes_the_cluster_smaller(laptop):
    cloud, code = laptop.cloud, "Client.VolumeLimitExceeded"
    cloud.proxy.on("CreateFleet", end_at_once(cloud), calls=[1])
    cloud.proxy.on("DescribeInstances", ended_by(code))
    said = cloud.cluster("up", "demo", "-w", 2, "--min-workers", 1, "--instance-type", "c5.large", "--ami", cloud.image(),
                         "--shared", SHARED, "--yes", "--timeout", 120, status=3).stderr
    assert f"has ended: {code}" in said and "only 1 of 2 workers could be started" in said
    assert len(cloud.of_cluster("demo")) == 2


def agents(status):
    return {node["name"]: node["agent"] for node in status["nodes"]}


def shown_on_a_terminal(cloud, *words, **streams):
    """What a command writes to a terminal, which is both its streams but for those that are given."""
    master, terminal = pty.openpty()
    streams = {"stdout": terminal, "stderr": terminal, **streams}
    process = subprocess.Popen([cloud.program, *words], env={**cloud.environment, "TERM": "xterm"}, cwd=cloud.folder,
                               stdin=subprocess.DEVNULL, **streams)
    os.close(terminal)
    shown = b""
    with contextlib.suppress(OSError):  # the end of the other side
        while piece := os.read(master, 4096):
            shown += piece
    os.close(master)
    assert process.wait(120) == 0, shown
    return shown


def test_what_a_program_on_the_head_writes_is_shown_on_a_terminal_and_not_obeyed(laptop):
    """The clipboard of the terminal is not written, on either stream; a redrawn line is its last state. A file gets all bytes."""
    cloud = laptop.cloud
    laptop.up("-w", 1)
    evil = r"printf 'out\033]52;c;eA==\007\n'; printf 'err\033]52;c;eA==\007\n1%%\r2%%\nend\033[2J' >&2"
    words = ("launch", "--cluster", "demo", "-n", "1", "--job-dir")
    shown = shown_on_a_terminal(cloud, *words, "j1", "--", "sh", "-c", evil)
    lines = shown.decode().split("\r\n")
    assert {"out^[]52;c;eA==^G", "err^[]52;c;eA==^G", "2%", "end^[[2J"} <= set(lines), shown
    assert b"\033]" not in shown and b"\033[2J" not in shown, shown
    with open(cloud.folder / "errors", "wb") as errors:
        shown = shown_on_a_terminal(cloud, *words, "j2", "--", "sh", "-c", evil, stderr=errors)
    assert shown == b"out^[]52;c;eA==^G\r\n", shown
    assert b"err\033]52;c;eA==\007\n" in (cloud.folder / "errors").read_bytes()


@pytest.mark.slow
def test_a_cluster_stops_with_its_job_and_starts_with_its_disks(laptop):
    """Machines are cut off as EC2 stops them, and come back with their disk, another public address and cloud-init's later
    boot. There is no systemd here, and no NFS: the shared folder is a path."""
    cloud = laptop.cloud
    first = laptop.up("-w", 1, "--prepare", "echo once >>/prepared-so-often")["nodes"]
    nodes, public = private(first), {node["public_ip"] for node in first}
    words = ("train", "--cluster", "demo", *laptop.training, "--elastic", "--elastic-boundary", "step", "--num-epochs", 100000,
             "--model-prefix", "m/run")
    job = laptop.start("train", *words)
    laptop.wait_for(lambda: laptop.members() == set(nodes.values()) and laptop.epochs(), f"both train; {laptop.said('train')}")

    said = cloud.cluster("stop", "demo", "--yes")
    assert "the job was stopped with a checkpoint" in said.stderr and "cluster demo is stopped" in said.stdout
    assert job.wait(120) == 75, laptop.said("train")
    laptop.wait_for(lambda: all(laptop.machines.find(address).is_off() for address in nodes.values()), "the machines are off")
    assert agents(cloud.json("status", "demo")) == {"head": "unknown", "w0001": "unknown"}
    assert "the head of cluster demo is stopped" in cloud.cluster("ssh", "demo", status=2).stderr

    cloud.cluster("start", "demo", "--yes", "--timeout", 120)
    now = cloud.json("status", "demo")["nodes"]
    assert private(now) == nodes and not public & {node["public_ip"] for node in now}
    assert agents({"nodes": now}) == {"head": "registered", "w0001": "registered"}
    there = laptop.machines.find(nodes["w0001"])
    assert cloud.cluster("ssh", "demo", "w0001", "--", "cat", "/prepared-so-often").stdout == "once\n"
    assert cloud.run("run", "--cluster", "demo", "--", "hostname").stdout.count(there.name) == 1
    last = max(laptop.epochs())
    laptop.start("again", *words, "--resume")
    laptop.wait_for(lambda: max(laptop.epochs()) > last, "the job goes on")
    cloud.run("stop", "--cluster", "demo", status=None)
    cloud.cluster("down", "demo", "--yes")
    assert cloud.sweep("demo") == []


def test_status_finishes_what_up_left_when_it_did_not_wait(laptop):
    cloud = laptop.cloud
    laptop.up("-w", 1, "--no-wait")
    laptop.wait_for(lambda: cloud.json("status", "demo")["head_news"], "status brings the program to the head")
    laptop.wait_for(lambda: agents(cloud.json("status", "demo")) == {"head": "registered", "w0001": "registered"},
                    "both nodes are registered, with no other command than status")
    said = cloud.cluster("status", "demo").stdout.splitlines()
    assert said[1].split()[-1] == "AGENT" and [line.split()[-1] for line in said[2:]] == ["registered", "registered"]

    victim = next(node for node in cloud.json("status", "demo", "--no-head")["nodes"] if node["name"] == "w0001")
    assert (victim["agent"], victim["agent_why"]) == ("unknown", "not contacted because of --no-head")
    laptop.machines.find(victim["private_ip"]).run("sh", "-c", "pkill -9 -f 'agent --nod[e]'; rm -rf /opt/dtrain/bundle")
    laptop.wait_for(lambda: agents(cloud.json("status", "demo"))["w0001"] == "lost", "its agent is missed")
    # No process answers at the head's address any more.
    laptop.machines.find(cloud.json("status", "demo")["nodes"][0]["private_ip"]).run("ip", "link", "set", "eth0", "down")
    there = cloud.json("status", "demo")["nodes"]
    assert [node["agent"] for node in there] == ["unknown", "unknown"] and all(node["agent_why"] for node in there)


# An older driver, which knows no field of recovery, and a newer one.
SICK = """#!/bin/sh
case "$1" in
*gpu_recovery_action*) echo 'Field "gpu_recovery_action" is not a valid field to query.'; exit 2 ;;
*) echo '0, NVIDIA A10G, 580.95.05, 31, 23028, 2' ;;
esac
"""
NEWER = "#!/bin/sh\necho '0, NVIDIA A10G, 580.95.05, 31, 23028, 0, 0, Reset'\n"
FILL = "/usr/bin/mount -t tmpfs -o size=1m none /var && ! head -c 2m /dev/zero >/var/full 2>/dev/null"


def test_23_health_asks_every_node_through_the_head_and_replaces_the_sick(laptop):
    cloud = laptop.cloud
    first = laptop.up("-w", 1)["nodes"]
    sick = laptop.machines.find(private(first)["w0001"])
    asked = cloud.json("health", "demo")
    for node in asked["nodes"]:
        assert (node["agent"], node["why"], node["gpus_of_type"], node["gpus"]["gpus"]) == ("registered", "", 0, [])
        assert abs(node["clock_offset_seconds"]) <= node["clock_within_seconds"]  # both have this machine's clock
    sick.run("sh", "-c", 'cat >"$0" && chmod 755 "$0"', "/usr/bin/nvidia-smi", text=SICK)
    found = cloud.json("health", "demo", status=20)
    assert {node["name"]: node["why"] for node in found["nodes"]} == {
        "head": "", "w0001": "GPU 0: 2 uncorrected memory errors"}
    assert found["nodes"][1]["gpus"]["gpus"][0]["name"] == "NVIDIA A10G"
    sick.run("sh", "-c", 'cat >"$0"', "/usr/bin/nvidia-smi", text=NEWER)
    sick.run("sh", "-c", FILL)
    asked, full = cloud.cluster("health", "demo", status=20).stdout, "the disk of /var is full: 0 B of 1.0 MiB are free"
    assert "GPU 0: its driver asks for 'Reset' after an error" in asked and full in asked
    assert f"w0001 is impaired: GPU 0: its driver asks for 'Reset' after an error; {full}" in cloud.cluster("status", "demo").stdout
    sick.run("sh", "-c", "umount /var; printf '#!/bin/sh\nexec sleep 1000\n' >/usr/bin/nvidia-smi")
    cloud.cluster("health", "demo")  # a type without GPUs needs no nvidia-smi
    sick.run("sh", "-c", 'cat >"$0"', "/usr/bin/nvidia-smi", text=SICK)

    replaced = cloud.json("health", "demo", "--replace", "--yes", "--timeout", 120)["replaced"]
    nodes = cloud.json("health", "demo")["nodes"]
    assert [(node["name"], node["agent"]) for node in nodes] == [("head", "registered"), ("w0001", "registered")]
    assert replaced[0]["instance_id"] == first[1]["instance_id"] and replaced[0]["new_instance_id"] == nodes[1]["instance_id"]


@pytest.mark.slow
def test_up_ends_in_time_where_the_boot_of_the_head_does_not(laptop, monkeypatch):
    monkeypatch.setattr(Machine, "first_boot", lambda machine: None)
    said = laptop.cloud.cluster("up", "demo", "-w", 0, "--instance-type", "c5.large", "--ami", laptop.cloud.image(), "--yes",
                                "--timeout", 20, status=4)
    assert "the boot of the head has not come to where it takes dtrain" in said.stderr


@pytest.mark.slow
def test_r24_ssh_needs_no_option_and_refuses_a_changed_host(laptop):
    cloud = laptop.cloud
    nodes = private(laptop.up("-w", 1)["nodes"])
    there = laptop.machines.find(nodes["w0001"])
    assert cloud.cluster("ssh", "demo", "w0001", "--", "hostname").stdout == f"{there.name}\n"
    agent = cloud.cluster("ssh", "demo", "w0001", "--", "echo", "[$SSH_AUTH_SOCK]").stdout
    assert agent == "[]\n"
    known = pathlib.Path(cloud.environment["HOME"]) / ".dtrain/clusters/demo/known_hosts"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", cloud.folder / "other"], check=True)
    kind, key = (cloud.folder / "other.pub").read_text().split()[:2]
    known.write_text(re.sub(r"^(\S+) ssh-ed25519 \S+", rf"\1 {kind} {key}", known.read_text(), flags=re.MULTILINE))
    refused = cloud.cluster("ssh", "demo", "w0001", "--", "hostname", status=None)
    assert refused.returncode != 0 and refused.stdout == "", refused.stderr
    assert not (pathlib.Path(cloud.environment["HOME"]) / ".ssh/known_hosts").exists()


@pytest.mark.slow
def test_r17_a_machine_launched_by_hand_joins_and_leaves_by_its_tag(laptop):
    """Like in the console of AWS: an instance is launched from the template, and later its elastic tag is deleted."""
    cloud = laptop.cloud
    nodes = private(laptop.up("-w", 1)["nodes"])
    job = laptop.start("train", "train", "--cluster", "demo", *laptop.training, "--elastic", "--elastic-boundary", "step",
                       "--num-epochs", 100000)
    laptop.start("watch", "cluster", "watch", "demo", "--every", 1)
    laptop.wait_for(lambda: laptop.members() == set(nodes.values()), f"both train; {laptop.said('train')}")
    template = cloud.ec2.describe_launch_templates()["LaunchTemplates"][0]["LaunchTemplateId"]
    made = cloud.ec2.run_instances(LaunchTemplate={"LaunchTemplateId": template}, InstanceType="c5.large", MinCount=1,
                                   MaxCount=1, SubnetId=cloud.instances()[0]["SubnetId"])["Instances"][0]
    identity, host = made["InstanceId"], made["PrivateIpAddress"]

    def status():
        return cloud.tags(identity).get("elastic_worker_status")

    laptop.wait_for(lambda: host in laptop.members() and status() == "ADDED", f"it joins; {laptop.said('watch')}")
    cloud.ec2.delete_tags(Resources=[identity], Tags=[{"Key": "demo-aws-dl-cfn-elastic-worker"}])
    laptop.wait_for(lambda: identity not in [instance["InstanceId"] for instance in cloud.of_cluster("demo")],
                    f"it is ended; {laptop.said('watch')}")
    assert laptop.hosts()[host] == "REMOVED" and status() == "REMOVED"
    assert laptop.members() == set(nodes.values())
    cloud.run("stop", "--cluster", "demo", status=None)
    job.wait(120)
