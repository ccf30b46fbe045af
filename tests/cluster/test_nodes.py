"""Nodes that boot by their real user data: the head, its HTTP server, registration, agents of jobs. Cloud commands
are tested in test_site.py."""

import hashlib
import hmac
import io
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tarfile

import pytest

if "DTRAIN_CLUSTER_LAB" not in os.environ:
    pytest.skip("machines need namespaces: tests/cluster/run.sh makes them", allow_module_level=True)

from machines import LOGIN, Machines, lab  # noqa: E402

USER_DATA = pathlib.Path(os.environ["DTRAIN"]).parent / "tests/dtrain_user_data"
SHARED = str(lab.SHARED)
SECRET = "5ec2e7" + 58 * "0"  # the admission secret of the cluster


def bundle_of(program):
    """(bytes, sha256) of what `cluster up` uploads."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.add(program, "dtrain")
    content = archive.getvalue()
    return content, hashlib.sha256(content).hexdigest()


def tag_of(machine, key):
    return next(tag["Value"] for tag in machine.instance["Tags"] if tag["Key"] == key)


class Site:
    """A cluster made by hand."""

    def __init__(self, cloud):
        self.cloud, self.machines = cloud, Machines(cloud)
        self.bundle, self.sha256 = bundle_of(cloud.program)
        self.head = None

    def script(self, **words):
        told = {"cluster": "demo", "role": "worker", "admission": SECRET, "sha256": self.sha256, "login": LOGIN, "region": "us-east-1",
                "shared": "path", "folder": SHARED, "head": self.head.address if self.head else "", **words}
        return subprocess.run([USER_DATA], input=json.dumps(told), capture_output=True, text=True, check=True).stdout

    def launch(self, name, **words):
        """A machine, once it is booted; its user data still runs."""
        tags = {"dtrain:cluster": "demo", "dtrain:node": name}
        instance = self.cloud.ec2.run_instances(
            ImageId=self.cloud.image(), InstanceType="c5.large", MinCount=1, MaxCount=1, UserData=self.script(**words),
            TagSpecifications=[{"ResourceType": "instance",
                                "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}])["Instances"][0]
        return self.machines.wait_for(lambda: self.machines.find(instance["InstanceId"]), f"{name} boots")

    def launch_head(self, bundle=None, **words):
        self.head = self.launch("head", role="head", **words)
        self.machines.wait_for(lambda: self.head.run("test", "-d", "/opt/dtrain/incoming", check=False).returncode == 0,
                               "the head waits for the bundle")
        place = f"/opt/dtrain/incoming/{self.sha256}.tar"
        command = self.head.command(["sh", "-c", 'cat >"$0.part" && mv "$0.part" "$0"', place], "/")
        subprocess.run(command, input=bundle or self.bundle, env=self.head.environment(), check=True)
        if not bundle:
            self.wait_for_nodes("head")
        return self.head

    def dtrain(self, *words, check=True, text="", timeout=300):
        """On the head, as its user."""
        return self.head.run("runuser", "-u", LOGIN, "--", "env", f"HOME=/home/{LOGIN}", "/opt/dtrain/bundle/dtrain", *words,
                             folder=SHARED, check=check, text=text, timeout=timeout)

    def ask(self, **question):
        answer = self.dtrain("agent", "--ask", text=json.dumps(question), check=False)
        return json.loads(answer.stdout) if answer.returncode == 0 else {}

    def announce(self, *machines):
        assert self.ask(ask="announce", instances={
            m.instance["InstanceId"]: {"address": m.address, "name": tag_of(m, "dtrain:node")} for m in machines}) == {"ok": True}

    def nodes(self):
        return {node["name"]: node for node in self.ask(ask="list").get("nodes", []) if node["connected"]}

    def wait_for_nodes(self, *names):
        self.machines.wait_for(lambda: set(self.nodes()) == set(names), f"registered are {names}; now {self.nodes()}")

    def down(self):
        self.machines.down()
        shutil.rmtree(lab.SHARED / ".dtrain", ignore_errors=True)  # the bundle that the first head keeps there


@pytest.fixture
def site(cloud):
    made = Site(cloud)
    yield made
    made.down()


@pytest.mark.slow
def test_r16_every_node_has_the_files_of_the_cluster(site):
    """Old nodes and new ones; and no node can log in to another."""
    site.launch_head()
    first, second = site.launch("w0001"), site.launch("w0002")
    site.announce(first, second)
    site.wait_for_nodes("head", "w0001", "w0002")
    machines = [site.head, first, second]
    order = [node["address"] for node in site.ask(ask="list")["nodes"]]
    for machine in machines:
        site.machines.wait_for(lambda m=machine: m.run("cat", "/opt/deeplearning/workers", check=False).stdout ==
                               "deeplearning-worker1\ndeeplearning-worker2\ndeeplearning-worker3\n", "the workers file")
        names = machine.run("sh", "-c", "getent hosts deeplearning-master deeplearning-worker1 deeplearning-worker3").stdout
        assert [line.split()[0] for line in names.splitlines()] == [site.head.address, order[0], order[2]]
        told = machine.run("sh", "-c", ". /etc/profile.d/deeplearning.sh; env", check=True).stdout.splitlines()
        assert {"DEEPLEARNING_WORKERS_COUNT=3", "DEEPLEARNING_WORKERS_PATH=/opt/deeplearning/workers", "AWS_REGION=us-east-1",
                "DEEPLEARNING_WORKER_GPU_COUNT=0", f"EFS_MOUNT={SHARED}",
                "ELASTIC_WORKER_TAG=demo-aws-dl-cfn-elastic-worker"} <= set(told)
        assert machine.run("sh", "-c", "ls ~root/.ssh").stdout == "authorized_keys\n"


@pytest.mark.slow
def test_r21_an_idle_node_powers_off_and_a_busy_one_stays(site):
    """A node ends without the head or a user. A process with the name of a training makes it busy, also
    where options come before the word."""
    site.launch_head()
    training = ("printf '#!/bin/sh\\nsleep 600\\n' >/tmp/dtrain; chmod +x /tmp/dtrain; "
                "/tmp/dtrain --quiet train >/dev/null 2>&1 &")
    busy, idle = site.launch("w0001", autostop=2, prepare=training), site.launch("w0002", autostop=2)
    site.announce(busy, idle)
    site.machines.wait_for(lambda: idle.wants_to_be_off() or not site.machines.find(idle.address), "the idle node is off")
    site.wait_for_nodes("head", "w0001")
    assert not busy.wants_to_be_off()


def test_r19_a_tampered_bundle_is_never_run(site):
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        program = tarfile.TarInfo("dtrain")
        program.mode, program.size = 0o755, len(script := b"#!/bin/sh\ntouch /run/lab/shared/was-run\n")
        tar.addfile(program, io.BytesIO(script))
    head = site.launch_head(bundle=archive.getvalue())
    identity = head.instance["InstanceId"]
    site.machines.wait_for(lambda: identity not in [i["InstanceId"] for i in site.cloud.instances()], "the head is gone")
    assert not (lab.SHARED / "was-run").exists()


@pytest.mark.slow
def test_r18_a_failing_prepare_command_ends_the_node_and_is_told(site):
    site.launch_head()
    good = site.launch("w0001")
    site.announce(good)
    bad = site.launch("w0002", prepare="echo no data here >&2; exit 7")
    site.machines.wait_for(lambda: not site.machines.find(bad.address), "the node is gone")
    failure = site.ask(ask="list")["failures"][0]
    assert (failure["stage"], failure["exit_code"], failure["address"]) == ("prepare", 7, bad.address)
    assert "no data here" in failure["log"] and len(failure["log"]) <= 4096
    slow = site.launch("w0003", prepare="sleep 1000", prepare_seconds=1, keep_failed=True)
    site.machines.wait_for(lambda: len(site.ask(ask="list")["failures"]) == 2, "the second failure")
    assert "did not end within 1 s" in site.ask(ask="list")["failures"][1]["log"]
    assert not slow.wants_to_be_off()
    site.wait_for_nodes("head", "w0001")


def test_efs_is_mounted_as_aws_recommends(site):
    site.launch_head(shared="efs", file_system="fs-0123456789abcdef0", folder="/myEFSvolume")
    asked = site.head.run("cat", "/mounts").stdout
    assert "fs-0123456789abcdef0.efs.us-east-1.amazonaws.com:/ /myEFSvolume" in asked
    assert "noresvport" in asked and "nfsvers=4.1" in asked


@pytest.mark.slow
def test_a_stranger_is_not_admitted(site):
    """An unannounced node waits; only users with the right to it can read the token."""
    site.launch_head()
    stranger = site.launch("w0001")
    site.machines.wait_for(lambda: site.ask(ask="list")["waiting"], "it asks to join")
    assert set(site.nodes()) == {"head"}
    site.announce(stranger)
    site.wait_for_nodes("head", "w0001")
    assert stranger.run("stat", "-c", "%a %U", "/opt/dtrain/registry.json").stdout == f"600 {LOGIN}\n"
    token = json.loads(stranger.run("cat", "/opt/dtrain/registry.json").stdout)["token"]
    assert token not in stranger.run("sh", "-c", "cat /proc/*/cmdline /var/lib/user-data | tr '\\0' ' '").stdout


ASK_FOR_TOKEN = """
ask() { curl -s --max-time 5 "$@"; }
session=$(ask -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' http://169.254.169.254/latest/api/token)
document=$(ask -H "X-aws-ec2-metadata-token: $session" http://169.254.169.254/latest/dynamic/instance-identity/document)
printf '%s' "$document" | python3 -c 'import json, struct, sys
claim = json.dumps({"document": sys.stdin.read()}).encode()
sys.stdout.buffer.write(struct.pack("<I", len(claim)) + claim)' >/tmp/claim.$$
(cat /tmp/claim.$$; sleep 2) | openssl s_client -connect "$HEAD:717" -bind "$HEAD:$PORT" -tls1_3 -quiet -psk "$KEY" \
  -psk_identity 'dtrain 2 admission' -ciphersuites TLS_AES_128_GCM_SHA256 2>&1 | tr -d '\\0'
"""


def ask_for_token(head, *prefix, secret=SECRET, port):
    """What a program on the head gets that knows the admission secret and the identity document, as every user there does."""
    key = hmac.digest(secret.encode(), b"dtrain TLS key for admission", "sha256").hex()
    return head.run("env", f"HEAD={head.address}", f"PORT={port}", f"KEY={key}", *prefix, "sh", "-c", ASK_FOR_TOKEN).stdout


def listening(machine):
    """{port: address in /proc's form} of a machine."""
    rows = [line.split() for line in machine.run("cat", "/proc/net/tcp").stdout.splitlines()[1:]]
    return {int(port, 16): address for address, port in (row[1].split(":") for row in rows if row[3] == "0A")}


def test_a_user_of_a_node_gets_no_token(site):
    """A program of any user of a node has its address, its identity document and its user data, but no port below 1024. And
    a program of root that has not read the user data, as in a container behind a bridge, gets none either. All ports of the
    head are at its private address."""
    head = site.launch_head()
    own = socket.inet_aton(head.address)[::-1].hex().upper()
    ports = listening(head)
    at_own = {port for port in ports if ports[port] == own}
    assert {717, 7171} < at_own and len(at_own) == 3 and set(ports) - at_own == {22, 80}, ports  # sshd, and the lab's metadata
    assert "only root of a node" in ask_for_token(head, "runuser", "-u", "nobody", "--", port=0)
    token = json.loads(head.run("cat", "/opt/dtrain/registry.json").stdout)["token"]
    assert token in ask_for_token(head, port=700)
    assert token not in ask_for_token(head, secret="guess", port=701)


def test_a_node_believes_only_a_head_with_the_secret_of_its_cluster(site):
    """A foreign machine has got the head's address. A node of the cluster finds it, and tells it nothing and obeys nothing."""
    head = site.launch_head(admission=64 * "f")
    lost = site.launch("w0001")
    site.announce(lost)
    site.machines.wait_for(lambda: "another token" in lost.log(), "the node says that this is not its head")
    assert set(site.nodes()) == {"head"} and site.ask(ask="list")["waiting"] == []
    assert lost.run("test", "-e", "/opt/dtrain/registry.json", check=False).returncode != 0
    report = f"proof {lost.address} prepare 7\nlies\n"
    posted = lost.run("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--data-binary", report,
                      f"http://{head.address}:7171/failure")
    assert posted.stdout == "403" and site.ask(ask="list")["failures"] == []


def test_a_job_runs_on_registered_nodes_with_the_bits_of_one_machine(site):
    """Agents start without ssh."""
    site.launch_head()
    workers = [site.launch("w0001"), site.launch("w0002")]
    site.announce(*workers)
    site.wait_for_nodes("head", "w0001", "w0002")
    site.dtrain("data", "prepare", "shapes", "--force", "--out", f"{SHARED}/d", "--train-count", "240", "--val-count", "60")
    words = ["--network", "resnet", "--num-layers", "8", "--width", "8", "--num-epochs", "1", "--global-batch", "64",
             "--logical-shards", "4", "--seed", "5", "--data-train", f"{SHARED}/d/shapes_train.rec", "--data-val",
             f"{SHARED}/d/shapes_val.rec"]
    site.dtrain("train", *words, "--launcher", "agents", "--job-dir", f"{SHARED}/job", "--model-prefix", f"{SHARED}/m/agents")
    site.dtrain("train", *words, "--job-dir", f"{SHARED}/alone", "--model-prefix", f"{SHARED}/m/alone")
    hashes = [json.loads(site.dtrain("inspect", "--json", f"{SHARED}/m/{name}-0001.safetensors").stdout)["weights_sha256"]
              for name in ("agents", "alone")]
    assert hashes[0] == hashes[1]
    log = (lab.SHARED / "job/host_worker_log").read_text()
    assert sorted(line.split()[2] for line in log.splitlines() if "ADDED" in line) == sorted(
        machine.address for machine in (site.head, *workers))
