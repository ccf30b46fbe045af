"""A real sshd that stands for many hosts: it listens on all of 127.0.0.0/8."""

from __future__ import annotations

import os
import pathlib
import shutil
import socket
import subprocess

from runner import Skip
from world import eventually

SSHD = "/usr/sbin/sshd"


class Sshd:
    def __init__(self, folder: pathlib.Path, home: pathlib.Path, *lines: str):
        """`home` gets the key that it accepts; `lines` are more for its configuration."""
        if not pathlib.Path(SSHD).exists() or not shutil.which("ssh-keygen"):
            raise Skip("no sshd here: install openssh-server")
        (home / ".ssh").mkdir(mode=0o700, exist_ok=True)
        folder.mkdir()
        for key in (folder / "host", home / ".ssh" / "id_ed25519"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
        if os.getuid() == 0:
            pathlib.Path("/run/sshd").mkdir(exist_ok=True)
        with socket.socket() as probe:
            probe.bind(("", 0))
            self.port = probe.getsockname()[1]
        (folder / "config").write_text("\n".join([
            f"Port {self.port}", "ListenAddress 0.0.0.0", f"HostKey {folder / 'host'}",
            f"AuthorizedKeysFile {home / '.ssh' / 'id_ed25519.pub'}", "PidFile none", "StrictModes no", "UsePAM no",
            "PasswordAuthentication no", "KbdInteractiveAuthentication no", "Subsystem sftp internal-sftp",
            f"SetEnv HOME={home}", *lines, ""]))
        self.log = folder / "log"
        self.process = subprocess.Popen([SSHD, "-D", "-f", folder / "config", "-E", self.log], stdin=subprocess.DEVNULL)
        eventually(self.answers, "sshd answers")

    def answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def hosts(self, count: int) -> list[str]:
        return [f"127.0.{number // 250 + 1}.{number % 250 + 1}:{self.port}" for number in range(count)]

    def refused(self) -> int:
        """Logins that it dropped because there were too many."""
        return self.log.read_text(errors="replace").count("past MaxStartups")

    def end(self) -> None:
        self.process.terminate()
        self.process.wait()
