"""Real jobs on the machines of a lab: commands run on h1 unless a test says otherwise."""

from __future__ import annotations

import os
import pathlib
import subprocess

from lab import Host, LAB, Lab, command_line, parent_of, send_kill
from world import Job, PATIENCE, World

MACHINES = int(os.environ.get("DTRAIN_LAB_MACHINES", 4))
AGENT = "/run/agent"
PROGRAM = "/usr/local/bin/dtrain"


class Cluster(World):
    """A lab of machines that are off until boot()."""

    def __init__(self, folder: pathlib.Path, data: pathlib.Path):
        super().__init__(folder, data)
        self.lab = Lab(MACHINES).up()
        self.seat = self.lab["h1"]  # where the person sits
        self.environment = self.seat.environment()
        self.program: str | pathlib.Path = PROGRAM

    @property
    def job_type(self):
        return HostsJob

    def boot(self, *names: str) -> Cluster:
        self.lab.boot(*names)
        return self

    def command(self, arguments) -> list[str]:
        return self.seat.command([self.program, *map(str, arguments)], self.folder)

    def run_on(self, host: str, *arguments, check: bool = True, timeout: float = PATIENCE):
        """dtrain on another machine than the seat."""
        answer = subprocess.run(self.lab[host].command([PROGRAM, *map(str, arguments)], self.folder),
                                env=self.environment, timeout=timeout, capture_output=True, text=True,
                                stdin=subprocess.DEVNULL, check=False)
        if check and answer.returncode != 0:
            raise AssertionError(f"dtrain {' '.join(map(str, arguments))} on {host}: exit {answer.returncode}\n{answer.stderr}")
        return answer

    def key(self) -> str:
        """The private key that all machines accept."""
        return (LAB / "key").read_text()

    def lend_key(self, host: str) -> None:
        """A machine without a key gets an ssh agent with it, as a person forwards theirs; commands on the seat use it."""
        self.lab[host].run("sh", "-c", f"umask 77 && cat >/run/key && rm -f {AGENT} && ssh-agent -a {AGENT} >/dev/null && "
                           f"SSH_AUTH_SOCK={AGENT} ssh-add -q /run/key && rm /run/key", text=self.key())
        self.environment |= {"SSH_AUTH_SOCK": AGENT}

    def take_key_back(self, host: str) -> None:
        for pid in self.lab[host].processes("ssh-agent"):
            send_kill(pid)
        del self.environment["SSH_AUTH_SOCK"]

    def processes(self) -> list[int]:
        """Those of dtrain on all machines."""
        return [pid for host in self.lab.hosts for pid in host.processes("dtrain")]

    def last_words(self) -> str:
        rows = [f"    {job.name}: {host['name']} {host['state']}: {host.get('reason', '')}\n"
                for job in self.jobs for host in job.list()["hosts"]]
        return super().last_words() + "".join(rows)

    def end(self) -> None:
        self.lab.down()
        for job in self.jobs:
            if job.process:
                job.process.wait()


class HostsJob(Job):
    """`dtrain train --launcher ssh` on machines."""

    def __init__(self, world: Cluster, name: str, hosts: int | list[str] = 2, launcher: str = "ssh", **options):
        names = [f"h{number + 1}" for number in range(hosts)] if isinstance(hosts, int) else hosts
        super().__init__(world, name, hosts=names, launcher=launcher, **options)

    def host(self, name: str) -> Host:
        return self.world.lab[name]

    def training(self) -> dict[str, int]:
        """{host: process id as seen from outside} of the workers that are members."""
        return {name: self.host(name).outside(pid) for name, pid in super().training().items()}

    def agent(self, name: str) -> int:
        """The agent's process on that machine, as seen from outside: the one below its keeper."""
        agents = [pid for pid in self.host(name).processes(" agent") if "--worker" not in command_line(pid)]
        return next(pid for pid in agents if parent_of(pid) in agents)

    def keeper(self, name: str) -> int:
        return parent_of(self.agent(name))

    def coordinator(self) -> int:
        return next(pid for pid in self.world.seat.processes(" train "))

    def kill_coordinator(self) -> None:
        send_kill(self.coordinator())

    def seen_from(self, name: str) -> HostsJob:
        """From now on commands run on that machine. The coordinator that was started is dead, and is waited for here: a
        machine is not off before each of its processes has been."""
        self.world.seat = self.host(name)
        self.process.wait(PATIENCE)
        self.process = None
        return self

    def stop(self) -> HostsJob:
        if self.process:
            return super().stop()
        self.world.run("stop", "--job-dir", self.folder)
        self.world.expect_no_process_left()
        return self
