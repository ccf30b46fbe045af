"""Instances of the account as machines of tests/hosts: each boots, has EC2's metadata service, runs its user data as root at
its first boot and what that left for cloud-init at every later one, and is gone from the account once it powers off. Its
programs reach the account where a test says so, with the keys of the machine's role."""

import fcntl
import json
import os
import pathlib
import shutil
import socket
import socketserver
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "jobs"), str(HERE.parent / "hosts")]

import lab  # noqa: E402  (found through the line above)
from imds import Authority, identity_document  # noqa: E402

LOGIN = "ubuntu"
# This process, on the networks that moto takes addresses from: of a requested subnet, and of the default.
GATEWAYS = ("172.31.255.254/16", "10.255.255.254/8")
METADATA = "169.254.169.254"
# What a machine of EC2 has and one of the lab lacks.
OF_A_MACHINE = {
    "/usr/local/sbin/shutdown": "#!/bin/sh\ntouch /powers-off\n",
    "/usr/local/sbin/poweroff": "#!/bin/sh\ntouch /powers-off\n",
    # There is no NFS here: the lab's shared folder plays the file system, and mounts are recorded.
    "/usr/local/sbin/mount": '#!/bin/sh\necho "$*" >>/mounts\n'
                             'for folder in "$@"; do :; done\nexec /usr/bin/mount --bind /run/lab/shared "$folder"\n',
    "/usr/local/sbin/mount.nfs4": "#!/bin/sh\n",
}


class Machine(lab.Host):
    def __init__(self, number, instance, user_data, authority):
        super().__init__(number)
        self.name, self.address = f"n{number}", instance["PrivateIpAddress"]
        self.disk, self.link = lab.LAB / self.name, f"lab-n{number}"
        self.instance, self.user_data, self.authority = instance, user_data, authority
        self.public = instance.get("PublicIpAddress")
        self.gateway = next(gateway for gateway in GATEWAYS if gateway.split(".")[0] == self.address.split(".")[0])
        self.imds, self.notices = None, {}
        self.settings = {}  # further variables of what the machine runs

    def boot(self):
        self.without("program").without("key")
        for path in OF_A_MACHINE:  # of an earlier boot: the lab needs the real ones until the machine is up
            (self.disk / "upper" / path.lstrip("/")).unlink(missing_ok=True)
        os.environ["LAB_PREFIX"] = self.gateway.partition("/")[2]
        super().boot()
        self.wait_for_ssh()
        for path, text in OF_A_MACHINE.items():
            self.run("sh", "-c", 'cat >"$0" && chmod 755 "$0"', path, text=text)
        self.run("sh", "-c", f"id {LOGIN} 2>/dev/null || useradd -m -s /bin/bash {LOGIN}; mkdir -p ~{LOGIN}/.ssh /opt; "
                             f"cp ~root/.ssh/authorized_keys ~{LOGIN}/.ssh/; chown -R {LOGIN}: ~{LOGIN}",
                 folder="/")
        if self.public:
            self.run("ip", "address", "add", f"{self.public}/32", "dev", "eth0")
            lab.ip("route", "replace", f"{self.public}/32", "dev", "lab", "src", self.gateway.partition("/")[0])
        self.run("ip", "address", "add", f"{METADATA}/32", "dev", "lo")
        self.serve_metadata()
        if (self.disk / "booted").exists():
            self.later_boot()
        else:
            (self.disk / "booted").touch()
            self.first_boot()
        return self

    def is_off(self):
        return self.imds is None

    def run(self, *arguments, folder="/", **words):
        return subprocess.run(self.command(arguments, folder), env=self.environment(), input=words.pop("text", ""),
                              timeout=words.pop("timeout", 120), capture_output=True, text=True,
                              check=words.pop("check", True))

    def serve_metadata(self):
        self.tell_metadata()
        self.imds = subprocess.Popen(["nsenter", "-t", str(self.init), "--net", sys.executable, HERE / "imds.py",
                                      self.disk / "metadata.json", METADATA, "80"], stdin=subprocess.DEVNULL)
        lab.wait_for(lambda: self.run("sh", "-c", f"curl -s -o /dev/null http://{METADATA}/", check=False).returncode == 0,
                     "the metadata service answers")

    def tell_metadata(self):
        document = identity_document(self.instance)
        paths = {"meta-data/instance-id": self.instance["InstanceId"], "meta-data/local-ipv4": self.address,
                 "dynamic/instance-identity/document": document, "user-data": self.user_data,
                 "dynamic/instance-identity/rsa2048": self.authority.pkcs7(document)}
        paths |= {f"meta-data/tags/instance/{tag['Key']}": tag["Value"] for tag in self.instance.get("Tags", [])}
        paths |= self.keys_of_role()
        paths |= self.notices
        (self.disk / "metadata.json").write_text(json.dumps(paths))

    def keys_of_role(self):
        """Of the instance profile: {path: text}. Head and workers have different keys, by which the proxy knows them."""
        profile = self.instance.get("IamInstanceProfile", {}).get("Arn", "").rpartition("/")[2]
        if not profile:
            return {}
        role = next(tag["Value"] for tag in self.instance["Tags"] if tag["Key"] == "dtrain:role")
        keys = {"Code": "Success", "AccessKeyId": f"ASIA{role.upper()}", "SecretAccessKey": "temporary", "Token": "session-token",
                "Expiration": "2035-01-01T00:00:00Z"}
        folder = "meta-data/iam/security-credentials/"
        return {folder: profile, folder + profile: json.dumps(keys)}

    def announce(self, path, **words):
        """A notice of EC2 about this machine's end, as its metadata show it."""
        self.notices[f"meta-data/{path}"] = json.dumps(words)
        self.tell_metadata()

    def first_boot(self):
        self.run("sh", "-c", "cat >/var/lib/user-data", text=self.user_data)
        self.run_as_cloud_init("sh", "/var/lib/user-data")

    def later_boot(self):
        self.run_as_cloud_init("sh", "-c", 'for one in /var/lib/cloud/scripts/per-boot/*; do [ ! -x "$one" ] || "$one"; done')

    def run_as_cloud_init(self, *words):
        path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        with open(self.disk / "boot.log", "ab") as log:
            subprocess.Popen(self.command(["setsid", "-f", *words], "/"), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                             env={"PATH": path, **self.settings})

    def wants_to_be_off(self):
        return (self.disk / "upper/powers-off").exists()

    def crash(self):
        if self.imds:
            self.imds.kill()
            self.imds.wait()
            self.imds = None
        super().crash()

    def log(self):
        said = self.run("sh", "-c", "cat /var/log/dtrain-node.log", check=False).stdout
        return f"{said}\n{(self.disk / 'boot.log').read_text(errors='replace')}"


class Relay(socketserver.BaseRequestHandler):
    """To a port of this process's own address."""

    def handle(self):
        with socket.create_connection(("127.0.0.1", self.port)) as there:
            back = threading.Thread(target=self.pour, args=(there, self.request), daemon=True)
            back.start()
            self.pour(self.request, there)
            back.join()

    @staticmethod
    def pour(source, target):
        try:
            while data := source.recv(1 << 16):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the other side has closed


class Machines:
    """All instances of an account, each a machine from when it is first seen until it is terminated."""

    def __init__(self, cloud):
        self.cloud, self.authority = cloud, Authority()
        self.by_id, self.number, self.over = {}, 0, False
        self.settings = {}  # of all machines
        self.alone = open(lab.LAB / "machines.lock", "w")  # tests run side by side, but there is one network
        fcntl.flock(self.alone, fcntl.LOCK_EX)
        try:
            self.floor = lab.Lab(0).up()
            for gateway in GATEWAYS:
                lab.ip("address", "add", gateway, "dev", "lab")
            os.chmod(lab.SHARED, 0o777)
        except Exception:
            self.alone.close()
            raise
        self.errors, self.changing = [], threading.Lock()
        self.thread = threading.Thread(target=self.follow)
        self.thread.start()

    def follow(self):
        while not self.over:
            try:
                with self.changing:
                    self.look()
            except Exception as error:  # reported at the end: a thread's exception is lost
                self.errors.append(error)
            time.sleep(0.2)

    def look(self):
        there = {instance["InstanceId"]: instance for instance in self.cloud.instances()}
        for identity, machine in list(self.by_id.items()):
            if identity not in there:
                self.by_id.pop(identity).crash()
            elif there[identity]["State"]["Name"] in ("stopping", "stopped"):
                machine.crash()
            elif machine.is_off():
                machine.instance, machine.public = there[identity], there[identity].get("PublicIpAddress")
                machine.boot()
            elif machine.wants_to_be_off():
                self.cloud.ec2.terminate_instances(InstanceIds=[identity])
            elif machine.instance.get("Tags") != there[identity].get("Tags"):
                machine.instance = there[identity]
                machine.tell_metadata()
        for identity, instance in there.items():
            if identity not in self.by_id and instance["State"]["Name"] == "running":
                self.number += 1
                machine = Machine(self.number, instance, self.cloud.user_data(identity), self.authority)
                machine.settings = self.settings
                try:
                    self.by_id[identity] = machine.boot()
                except Exception:
                    machine.crash()
                    raise

    def reach(self, url):
        """Lets the programs of machines that boot from now on reach the account there, from each machine's own gateway."""
        port = int(url.rpartition(":")[2])
        gateway = GATEWAYS[0].partition("/")[0]
        self.relay = socketserver.ThreadingTCPServer((gateway, 0), type("To", (Relay,), {"port": port}))
        self.relay.daemon_threads = True
        threading.Thread(target=self.relay.serve_forever, args=(0.05,), daemon=True).start()
        self.settings = {"AWS_ENDPOINT_URL": f"http://{gateway}:{self.relay.server_address[1]}"}

    def cut_power(self, machines):
        """All at once. As their instances still run, they boot again by themselves."""
        with self.changing:
            for machine in machines:
                machine.crash()

    def find(self, word):
        """By address or by instance id; None: not found."""
        return next((machine for identity, machine in list(self.by_id.items()) if word in (identity, machine.address)), None)

    def wait_for(self, condition, what, seconds=120):
        end = time.monotonic() + seconds
        while True:
            value = condition()
            if value:
                return value
            if time.monotonic() > end:
                logs = "\n".join(f"--- {m.address}\n{m.log()}" for m in list(self.by_id.values()))
                raise AssertionError(f"not within {seconds} s: {what}\n{self.errors}\n{logs}")
            time.sleep(0.1)

    def down(self):
        self.over = True
        self.thread.join()
        if self.settings:
            self.relay.shutdown()
            self.relay.server_close()
        try:
            for machine in self.by_id.values():
                machine.crash()
            self.floor.down()
            for entry in lab.LAB.glob("n*"):
                shutil.rmtree(entry, ignore_errors=True)
        finally:
            self.alone.close()  # else the next test waits for ever
        assert self.errors == []
