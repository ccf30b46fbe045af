"""Machines on one machine: each has its own network card and address, processes, root folder, name, and sshd.

They hang on one bridge and share the folder /run/lab/shared. To be used in the namespaces that run.sh makes.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

from runner import Skip
from world import SLOWNESS

HERE = pathlib.Path(__file__).resolve().parent
LAB = pathlib.Path("/run/lab")
SHARED = LAB / "shared"
SHARE_SERVER = LAB / "share-by-network"
SFTP_SERVERS = ("/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server", "/usr/lib/ssh/sftp-server")
NET, NET_OF_SIX = "10.77.0", "fd77:"
NFS = bool(os.environ.get("DTRAIN_LAB_NFS"))  # the folder comes over the network, and who is cut off waits for it
BOOT_PATIENCE = 60.0 * SLOWNESS


def ip(*arguments) -> None:
    subprocess.run(["ip", *map(str, arguments)], check=True, capture_output=True, text=True)


class Host:
    """One machine; off until boot()."""

    def __init__(self, number: int):
        self.number, self.name, self.address = number, f"h{number}", f"{NET}.{10 + number}"
        self.disk = LAB / self.name
        self.link = f"lab-{self.name}"  # the bridge's end of its cable
        self.unshare: subprocess.Popen | None = None
        self.init = 0  # its first process, as seen from outside

    # Life.

    def boot(self) -> Host:
        self.disk.mkdir(exist_ok=True)
        if not (self.disk / "host_key").exists():
            make_key(self.disk / "host_key", self.name)
        with open(self.disk / "console.log", "ab") as console:
            self.unshare = subprocess.Popen(
                ["unshare", "--net", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child=KILL",
                 "bash", HERE / "host_init.sh", self.name, self.address, LAB],
                stdin=subprocess.DEVNULL, stdout=console, stderr=console)
        self.init = wait_for(lambda: first_child(self.unshare.pid), f"{self.name} has a process")
        card = f"02:00:00:00:00:{10 + self.number:02x}"  # the same after a restart: others remember it
        ip("link", "add", self.link, "type", "veth", "peer", "name", "eth0", "address", card, "netns", self.init)
        ip("link", "set", self.link, "master", "lab", "up")
        return self

    def without(self, what: str) -> Host:
        """Before boot(): it has no share, no program, or no key to log in elsewhere."""
        self.disk.mkdir(exist_ok=True)
        (self.disk / f"no-{what}").touch()
        return self

    def new_host_key(self) -> Host:
        for path in (self.disk / "host_key", self.disk / "host_key.pub"):
            path.unlink()
        return self

    def wait_for_ssh(self) -> Host:
        wait_for(lambda: self.answers(), f"sshd of {self.name} answers; its console: {self.console()}")
        return self

    def answers(self) -> bool:
        try:
            with socket.create_connection((self.address, 22), 1) as connection:
                connection.settimeout(5)
                return connection.recv(4) == b"SSH-"
        except OSError:
            return False

    def console(self) -> str:
        path = self.disk / "console.log"
        return path.read_text(errors="replace")[-2000:] if path.exists() else ""

    def crash(self) -> None:
        """Every process of it is killed; those who talked to it hear of that."""
        if not self.unshare:
            return
        send_kill(self.init)
        self.unshare.wait()
        self.unshare = None
        # The kernel takes it away too, but not at once.
        subprocess.run(["ip", "link", "delete", self.link], check=False, capture_output=True)

    def power_off(self) -> None:
        """As crash(), but nobody hears anything."""
        self.partition()
        self.crash()

    def partition(self) -> None:
        """Nothing comes through any more, and nobody is told."""
        ip("link", "set", self.link, "down")

    def rate(self, rate: str) -> None:
        """What is sent to it comes no faster: "100mbit"."""
        subprocess.run(["tc", "qdisc", "replace", "dev", self.link, "root", "tbf", "rate", rate, "burst", "128kb",
                        "latency", "50ms"], check=True, capture_output=True)

    def written(self) -> list[str]:
        """With Lab.share_by_network(): what it opened to write, renamed, made or removed in the shared folder, as the server saw it."""
        log = SHARE_SERVER / self.address
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        return [line for line in lines if "WRITE" in line or line.startswith(("rename", "mkdir", "remove", "rmdir"))]

    def heal(self) -> None:
        ip("link", "set", self.link, "up")

    # Work on it.

    def command(self, arguments, folder: pathlib.Path = SHARED) -> list[str]:
        """The command line that runs these words there; the environment is the caller's."""
        return ["nsenter", "-t", str(self.init), "--all", "--root", "sh", "-c", 'cd "$0" && exec "$@"',
                str(folder), *map(str, arguments)]

    def run(self, *arguments, text: str = "", timeout: float = 60, check: bool = True) -> subprocess.CompletedProcess:
        return subprocess.run(self.command(arguments), env=self.environment(), input=text, timeout=timeout,
                              capture_output=True, text=True, check=check)

    def start(self, *arguments) -> subprocess.Popen:
        """A command that goes on there."""
        return subprocess.Popen(self.command(arguments), env=self.environment(), stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def environment(self) -> dict[str, str]:
        return {"HOME": "/root", "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C", "USER": "root"}

    def processes(self, word: str = "") -> list[int]:
        """Those whose command line holds the word, without the machine's own first one; numbers as seen from outside."""
        if not self.unshare:
            return []
        own = namespace_of(self.init)
        return [pid for pid in all_processes() if pid != self.init and namespace_of(pid) == own
                and word in command_line(pid)]

    def outside(self, inside: int) -> int:
        """The number, seen from outside, of the process that has this number there."""
        return next((pid for pid in self.processes() if number_inside(pid) == inside), 0)


class Lab:
    """`count` machines h1, h2, ... on one bridge."""

    def __init__(self, count: int):
        self.hosts = [Host(number + 1) for number in range(count)]
        self.share_server: subprocess.Popen | None = None

    def share_by_network(self) -> Lab:
        """Before boot(): machines have the shared folder only as long as their cable leads to the one that serves it. Three
        seconds after it does not, whoever uses the folder gets EIO; healed, it comes back by itself."""
        program = next(filter(os.path.exists, SFTP_SERVERS), None)
        if NFS or not program or not shutil.which("sshfs") or not os.path.exists("/dev/fuse"):
            raise Skip("no program sshfs or sftp-server here, no /dev/fuse, or the folder is NFS's")
        SHARE_SERVER.mkdir()
        make_key(SHARE_SERVER / "host_key", "share")
        serve = f"exec {program} -e -l INFO 2>>{SHARE_SERVER}/${{SSH_CLIENT%% *}}"
        (SHARE_SERVER / "sshd_config").write_text(
            f"ListenAddress {NET}.1\nHostKey {SHARE_SERVER}/host_key\nAuthorizedKeysFile {LAB}/key.pub\nStrictModes no\n"
            f"UsePAM no\nUseDNS no\nPidFile none\nSubsystem sftp {serve}\n")
        self.start_share()
        return self

    def start_share(self) -> None:
        self.share_server = subprocess.Popen([shutil.which("sshd"), "-D", "-f", SHARE_SERVER / "sshd_config", "-E",
                                              SHARE_SERVER / "log"])

    def stop_share(self) -> None:
        """The server ends with all of its connections."""
        if not self.share_server:
            return
        own = namespace_of(os.getpid())
        for pid in all_processes():
            if namespace_of(pid) == own and command_line(pid).startswith(("sshd: ", "/usr/lib/openssh/sftp-server")):
                send_kill(pid)
        self.share_server.kill()
        self.share_server.wait()

    def up(self) -> Lab:
        if not (LAB / "key").exists():
            make_key(LAB / "key", "lab")
        self.write_names()
        ip("link", "add", "lab", "type", "bridge")
        ip("address", "add", f"{NET}.1/24", "dev", "lab")
        ip("link", "set", "lab", "up")
        for host in self.hosts:
            host.disk.mkdir(exist_ok=True)
        return self

    def write_names(self) -> None:
        names = "".join(f"{host.address} {host.name}\n" for host in self.hosts)
        (LAB / "hosts").write_text(f"127.0.0.1 localhost\n{names}")

    def by_ipv6_alone(self) -> Lab:
        """Before boot(): the machines have IPv6 addresses and no others."""
        if not os.path.exists("/proc/net/if_inet6"):
            raise Skip("this kernel has no IPv6")
        ip("address", "add", f"{NET_OF_SIX}:1/64", "dev", "lab", "nodad")
        for host in self.hosts:
            host.address = f"{NET_OF_SIX}:{10 + host.number}"
        self.write_names()
        return self

    def boot(self, *names: str) -> Lab:
        chosen = [host for host in self.hosts if not names or host.name in names]
        for host in chosen:
            host.boot()
        for host in chosen:
            host.wait_for_ssh()
        return self

    def down(self) -> None:
        for host in self.hosts:
            host.crash()
            shutil.rmtree(host.disk, ignore_errors=True)
        self.stop_share()
        shutil.rmtree(SHARE_SERVER, ignore_errors=True)
        subprocess.run(["ip", "link", "delete", "lab"], check=False, capture_output=True)

    def __getitem__(self, name: str) -> Host:
        return next(host for host in self.hosts if host.name == name)


def make_key(path: pathlib.Path, comment: str) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", path], check=True)


def wait_for(condition, what: str):
    end = time.monotonic() + BOOT_PATIENCE
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"the lab: not within {BOOT_PATIENCE:.0f} s: {what}")
        time.sleep(0.02)


def all_processes() -> list[int]:
    return [int(entry.name) for entry in pathlib.Path("/proc").iterdir() if entry.name.isdigit()]


def first_child(pid: int) -> int:
    try:
        words = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return 0
    return int(words[0]) if words else 0


def namespace_of(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return ""


def number_inside(pid: int) -> int:
    try:
        for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("NSpid:"):
                return int(line.split()[-1])
    except OSError:
        pass
    return 0


def parent_of(pid: int) -> int:
    try:
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0


def command_line(pid: int) -> str:
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def send_kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
