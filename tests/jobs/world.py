"""Real jobs in a scratch folder, seen from outside: processes in /proc, files of the job folder, answers of commands."""

from __future__ import annotations

import collections
import contextlib
import hashlib
import ipaddress
import json
import os
import pathlib
import signal
import socket
import subprocess
import threading
import time

DTRAIN = os.environ.get("DTRAIN", "")
# How much slower than a usual one this machine is, where the processor is emulated for example.
SLOWNESS = float(os.environ.get("DTRAIN_TEST_SLOWNESS", 1))
PATIENCE = 60.0 * SLOWNESS  # seconds until a wait is given up; tests must pass on a busy machine
SAMPLES = 960    # of the small data set


class World:
    """One test's jobs and files."""

    @property
    def job_type(self):
        return Job

    def __init__(self, folder: pathlib.Path, data: pathlib.Path):
        self.folder, self.data = folder, data
        self.jobs: list[Job] = []
        self.mark = f"{os.getpid()}.{time.monotonic_ns()}"  # in the environment of every process of this test
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith(("DTRAIN_", "DEEPLEARNING_")) and name != "EFS_MOUNT"}
        self.environment |= {"DTRAIN_TEST_MARK": self.mark, "HOME": str(folder), "LC_ALL": "C"}

    def command(self, arguments) -> list[str]:
        """The command line of dtrain with these words."""
        return [DTRAIN, *map(str, arguments)]

    def run(self, *arguments, check: bool = True, timeout: float = PATIENCE) -> subprocess.CompletedProcess:
        answer = subprocess.run(self.command(arguments), cwd=self.folder, env=self.environment, timeout=timeout,
                                capture_output=True, text=True, errors="backslashreplace", stdin=subprocess.DEVNULL, check=False)
        if check and answer.returncode != 0:
            raise AssertionError(f"dtrain {' '.join(map(str, arguments))}: exit {answer.returncode}\n{answer.stderr}")
        return answer

    def prepare_data(self) -> None:
        self.run("data", "prepare", "shapes", "--out", self.data, "--train-count", SAMPLES, "--val-count", 60)

    def job(self, name: str = "job", **options) -> Job:
        self.jobs.append(self.job_type(self, name, **options))
        return self.jobs[-1]

    def alone(self, job: Job, epochs: int) -> str:
        """The hash of the same run in one process that nothing disturbs. Tests that train the same share the run: it goes
        on when one of them asks for more epochs than any before.
        """
        words = list(map(str, job.training_arguments))
        if "--lr-schedule" in words:  # its rates may depend on the number of epochs
            words.append(str(epochs))
        prefix = self.data.parent / "alone" / hashlib.sha256("\0".join(words).encode()).hexdigest()[:16]
        if not prefix.with_name(f"{prefix.name}-{epochs:04}.safetensors").exists():
            begun = any(prefix.parent.glob(f"{prefix.name}-*.safetensors"))
            self.run(*job.training_arguments, "--num-epochs", epochs, "--model-prefix", prefix,
                     *(["--resume"] if begun else []), timeout=5 * PATIENCE)
        return state_hash(self, prefix, epochs)

    def processes(self) -> list[int]:
        """All living processes that were started by this test, whoever their parent is now."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                if f"DTRAIN_TEST_MARK={self.mark}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                pass
        return found

    def expect_no_process_left(self) -> None:
        eventually(lambda: not self.processes(), "no process is left", 15)

    def last_words(self) -> str:
        return "".join(f"    {job.name}: {line}\n" for job in self.jobs for line in job.said().splitlines()[-25:])

    def end(self) -> None:
        for pid in self.processes():
            send_signal(pid, signal.SIGKILL)
        for job in self.jobs:
            if job.process:
                job.process.wait()


class Job:
    """`dtrain train` with workers. It trains for longer than any test lasts, unless `epochs` says otherwise."""

    def __init__(self, world: World, name: str, hosts: int | list[str] = 2, epochs: int = 100000, elastic: bool = True,
                 boundary: str = "step", data=None, launcher: str = "local", samples: int = SAMPLES,
                 batch: int = 48, network=("resnet", "--num-layers", 8, "--width", 8, "--lr", 0.02), arguments=()):
        self.world, self.name, self.folder = world, name, world.folder / name
        self.hosts = [f"w{i + 1}" for i in range(hosts)] if isinstance(hosts, int) else hosts
        self.prefix, self.batch, self.epochs = world.folder / "m" / name, batch, epochs
        self.samples = samples  # of an epoch
        data = data or ["--data-train", world.data / "shapes_train.rec", "--data-val", world.data / "shapes_val.rec"]
        self.training_arguments = ["train", "--network", *network,
                                   "--global-batch", self.batch, "--logical-shards", 8, "--seed", 1, "--threads", 1,
                                   "--data-nthreads", 1, "--disp-batches", 5, *data]
        self.arguments = [*self.training_arguments, "--num-epochs", epochs, "--model-prefix", self.prefix,
                          "-H", world.folder / f"{name}.hosts", "--launcher", launcher, "--job-dir", self.folder,
                          "--sample-ledger", "--heartbeat-timeout", 3 * SLOWNESS, *arguments]
        if elastic:
            self.arguments += ["--elastic", "--elastic-boundary", boundary]
        self.process: subprocess.Popen | None = None

    def by_servers(self, servers: int, batch: int) -> Job:
        """Workers that do not wait for each other, each with batches of this size, and no logical shards."""
        for option in ("--global-batch", "--logical-shards"):
            at = self.arguments.index(option)
            del self.arguments[at:at + 2]
        self.arguments += ["--batch-size", batch, "-s", servers, "--kv-store", "dist_async"]
        self.batch = batch
        return self

    # Life.

    def start(self, *more, folder: pathlib.Path | None = None) -> Job:
        """`folder`: in which the command runs."""
        (self.world.folder / f"{self.name}.hosts").write_text("".join(f"{host}\n" for host in self.hosts))
        with open(self.log_path, "ab") as log, open(self.world.folder / f"{self.name}.out", "ab") as out:
            self.process = subprocess.Popen(self.world.command([*self.arguments, *more]), cwd=folder or self.world.folder,
                                            env=self.world.environment, stdin=subprocess.DEVNULL, stdout=out, stderr=log)
        return self

    def wait(self, timeout: float = 2 * PATIENCE) -> int:
        return self.process.wait(timeout)

    def finish(self, timeout: float = 2 * PATIENCE) -> Job:
        code = self.wait(timeout)
        assert code == 0, f"the job ended with {code}"
        return self

    def wait_running(self, workers: int | None = None) -> Job:
        """Until that many workers are members and have done a step together."""
        wanted = len(self.hosts) if workers is None else workers
        eventually(lambda: len(self.training()) == wanted, f"{wanted} workers train", job=self)
        return self.wait_steps(1)

    def wait_steps(self, steps: int) -> Job:
        """Until so many more steps are done."""
        first = self.steps_done()
        eventually(lambda: self.steps_done() >= first + steps, f"{steps} more steps are done", job=self)
        return self

    def stop(self) -> Job:
        self.world.run("stop", "--job-dir", self.folder)
        code = self.wait()
        assert code == 75, f"the stopped job ended with {code}"
        return self

    def edit(self, text: str) -> None:
        """As an editor saves: a new file under the old name."""
        new = self.folder / "host_worker.new"
        new.write_text(text)
        new.rename(self.folder / "host_worker")

    def expect_undisturbed_bits(self) -> None:
        """Stops the job, and compares with a run that nothing disturbed. Every completed epoch must have consumed every
        sample once.
        """
        self.stop()
        self.expect_exactly_once(self.expect_bits_of_alone(), self.samples)

    def expect_calm_bits(self) -> None:
        """The same for a job whose coordinator is no child of the test."""
        self.world.run("stop", "--job-dir", self.folder)
        eventually(lambda: not self.world.processes(), "the job is gone", 30)
        self.expect_exactly_once(self.expect_bits_of_alone(), self.samples)

    def expect_bits_of_alone(self) -> int:
        """One process goes on to the end of the epoch: the bits of a run that nothing disturbed. The completed epochs."""
        at = json.loads(self.world.run("inspect", self.prefix, "--json").stdout)
        epochs = at["epoch"] + (1 if at["step"] else 0)
        self.world.run(*self.training_arguments, "--num-epochs", epochs, "--model-prefix", self.prefix, "--resume")
        assert self.state_hash() == self.world.alone(self, epochs), f"other bits after {epochs} epochs"
        return at["epoch"]

    # What is seen from outside.

    def record(self) -> dict:
        """Of the coordinator: {"pid", "host", "addresses", "term", ...}."""
        return json.loads((self.folder / "coordinator.json").read_text())

    def wait_for_term(self, term: int, seconds: float = 60) -> dict:
        """Until that coordinator has taken over: its record."""
        eventually(lambda: any(event["event"] == "takeover" and event["term"] >= term for event in self.events()),
                   f"coordinator {term} takes over", seconds)
        return self.record()

    @property
    def log_path(self) -> pathlib.Path:
        return self.world.folder / f"{self.name}.err"

    def said(self) -> str:
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def list(self) -> dict:
        answer = self.world.run("hosts", "list", "--job-dir", self.folder, "--json", check=False)
        return json.loads(answer.stdout) if answer.returncode == 0 else {"hosts": []}

    def row(self, name: str) -> dict:
        return next((host for host in self.list()["hosts"] if host["name"] == name), {"state": "unknown", "pids": []})

    def training(self) -> dict[str, int]:
        """{host: process id} of the workers that are members."""
        return {host["name"]: host["pids"][0] for host in self.list()["hosts"] if host["state"] == "member"}

    def wait_members(self, *names: str) -> Job:
        eventually(lambda: set(self.training()) == set(names), f"{', '.join(names)} train", job=self)
        return self

    def steps_done(self) -> int:
        return int(self.list().get("samples_seen", 0)) // self.batch

    def worker_of_rank(self, rank: int) -> tuple[str, int]:
        return next((host["name"], host["pids"][0]) for host in self.list()["hosts"] if host["ranks"] == [rank])

    def events(self) -> list[dict]:
        """A line that a killed coordinator could not write to its end is left out, as dtrain's readers do."""
        path = self.folder / "events.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [json.loads(line) for line in lines if line.endswith("}")]

    def member_log(self) -> list[tuple[str, str]]:
        """[(ADDED | REMOVED, host)], with the grammar checked."""
        path, changes = self.folder / "host_worker_log", []
        for number, line in enumerate(path.read_text().splitlines() if path.exists() else []):
            sequence, change, host, nanoseconds = line.split(" ")
            assert change in ("ADDED", "REMOVED") and int(nanoseconds) > 10**18 and int(sequence) == number, line
            changes.append((change, host))
        return changes

    def state_hash(self) -> str:
        return state_hash(self.world, self.prefix)

    def consumed(self) -> dict[int, collections.Counter]:
        """{epoch: how often each sample was consumed by a step that counts}."""
        epochs = collections.defaultdict(collections.Counter)
        answer = self.world.run("events", "--job-dir", self.folder, "--ledger", "--json")
        for line in answer.stdout.splitlines():
            row = json.loads(line)
            epochs[row["epoch"]].update(row["samples"])
        return epochs

    def expect_exactly_once(self, epochs: int, samples: int = SAMPLES) -> None:
        consumed = self.consumed()
        for epoch in range(epochs):
            wrong = {sample: consumed[epoch][sample] for sample in range(samples) if consumed[epoch][sample] != 1}
            assert not wrong and len(consumed[epoch]) == samples, f"epoch {epoch}: consumed not once: {wrong}"

    def hosts_command(self, *arguments, check: bool = True) -> subprocess.CompletedProcess:
        return self.world.run("hosts", *arguments, "--job-dir", self.folder, check=check)


def state_hash(world: World, prefix: pathlib.Path, epoch: int | None = None) -> str:
    """Of that epoch's checkpoint, or of the newest."""
    which = [] if epoch is None else ["--load-epoch", epoch]
    return json.loads(world.run("inspect", prefix, *which, "--json").stdout)["state_sha256"]


def eventually(condition, what: str, seconds: float = 60.0, job: Job | None = None):
    """The condition's value once it is true. It is asked less often the longer it takes: many start a program."""
    end, pause = time.monotonic() + seconds * SLOWNESS, 0.05
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds:.0f} s: {what}")
        if job and job.process and job.process.poll() not in (None, 0):
            raise AssertionError(f"the job ended with {job.process.returncode} before: {what}")
        time.sleep(pause)
        pause = min(0.3, 1.15 * pause)


def send_signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


@contextlib.contextmanager
def slowed(pid: int):
    """The process runs for a quarter of the time."""
    over = threading.Event()

    def hold() -> None:
        while not over.is_set():
            send_signal(pid, signal.SIGSTOP)
            over.wait(0.03)
            send_signal(pid, signal.SIGCONT)
            over.wait(0.01)
    thread = threading.Thread(target=hold)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def children(pid: int) -> list[int]:
    """Direct ones, of all threads."""
    found = []
    for path in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(child) for child in path.read_text().split()]
        except OSError:
            pass
    return found


def address_in(text: str) -> str:
    """An address of /proc/net/tcp or tcp6, whose words of four bytes stand the wrong way round. A socket of IPv6 takes
    connections of IPv4 as well: such an address is told as that of IPv4."""
    words = [bytes.fromhex(text[i:i + 8])[::-1] for i in range(0, len(text), 8)]
    address = ipaddress.ip_address(b"".join(words))
    if address.version == 4:
        return str(address)
    return "0.0.0.0" if address.is_unspecified else str(address.ipv4_mapped or address)


def listening_places(pids: list[int]) -> set[tuple[str, int]]:
    """(address, port) of all TCP ports that these processes listen on, each in its own network namespace."""
    places = set()
    for pid in pids:
        inodes = set()
        for link in pathlib.Path(f"/proc/{pid}/fd").glob("*"):
            try:
                target = os.readlink(link)
            except OSError:
                continue
            if target.startswith("socket:["):
                inodes.add(target[8:-1])
        for table in ("tcp", "tcp6"):
            try:
                lines = pathlib.Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
            except OSError:
                continue
            for fields in map(str.split, lines):
                if fields[3] == "0A" and fields[9] in inodes:
                    address, port = fields[1].split(":")
                    places.add((address_in(address), int(port, 16)))
    return places


def alive(pid: int) -> bool:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False
