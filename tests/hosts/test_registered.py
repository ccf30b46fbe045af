"""Clusters of registered hosts: `dtrain cluster register`, and what works on them. The user sits at h1, which is no host of
the cluster; the hosts are h2, h3 and h4, and h2 is the head."""

import concurrent.futures
import json
import os
import pathlib

from cluster import Cluster
from runner import slow
from world import eventually, state_hash

NAMES = ("h2", "h3", "h4")


class Site:
    """One cluster, as its user handles it."""

    def __init__(self, world: Cluster, *hosts: str, name: str = "lab"):
        self.world, self.name, self.file = world, name, world.folder / "hosts"
        self.write(*hosts)

    def write(self, *hosts: str) -> None:
        self.file.write_text("".join(f"{host}\n" for host in hosts))

    def register(self, *words, check: bool = True):
        return self.world.run("cluster", "register", self.name, "--hosts", self.file, "--shared", self.world.folder, *words,
                              check=check)

    def cluster(self, verb: str, *words, check: bool = True, timeout: float = 120):
        return self.world.run("cluster", verb, self.name, *words, check=check, timeout=timeout)

    def seen(self, verb: str = "status", check: bool = True) -> dict:
        return json.loads(self.cluster(verb, "--json", check=check).stdout)

    def jobs(self, verb: str, *words, check: bool = True, timeout: float = 120):
        return self.world.run("jobs", verb, *words, "--cluster", self.name, check=check, timeout=timeout)

    def show(self, number: int) -> dict:
        return json.loads(self.jobs("show", number, "--json").stdout)

    def wait_for(self, number: int, condition, what: str, seconds: float = 90) -> dict:
        try:
            return eventually(lambda: (seen := self.show(number)) and condition(seen) and seen, what, seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.show(number)}\n{self.jobs('logs', number).stdout}") from None

    def members(self, job: int = 1) -> set[str]:
        """The hosts that train now."""
        words = ["hosts", "list", "--cluster", self.name, "--job-dir", self.folder() / f"{job:04d}", "--json"]
        answer = self.world.run(*words, check=False)
        rows = json.loads(answer.stdout)["hosts"] if answer.returncode == 0 else []
        return {row["name"] for row in rows if row["state"] == "member"}

    def wait_members(self, *names: str) -> None:
        eventually(lambda: self.members() == set(names), f"{', '.join(names)} train", 90)

    def folder(self) -> pathlib.Path:
        return self.world.folder / "dtrain-jobs" / self.name

    def listed(self) -> list[str]:
        lines = (self.folder() / "hosts").read_text().splitlines()
        return [line for line in lines if not line.startswith("#")]

    def train(self, job, *words, epochs: int, check: bool = True, timeout: float = 180):
        return self.world.run(*job.training_arguments, "--cluster", self.name, "--num-epochs", epochs, "--model-prefix",
                              job.prefix, "--heartbeat-timeout", 3, *words, check=check, timeout=timeout)

    def down(self) -> None:
        self.cluster("down", "--yes")
        self.world.expect_no_process_left()


def members_of(folder: pathlib.Path) -> set[str]:
    """The hosts whose last line in host_worker_log is ADDED."""
    last, path = {}, folder / "host_worker_log"
    for line in path.read_text().splitlines() if path.exists() else []:
        _, change, host, _ = line.split(" ")
        last[host] = change
    return {host for host, change in last.items() if change == "ADDED"}


def opened_by(world: Cluster, name: str) -> str:
    """The keys that open this machine."""
    return world.lab[name].run("sh", "-c", "cat ~/.ssh/authorized_keys").stdout


def refused(answer, code: int, *words: str) -> None:
    assert answer.returncode == code and all(word in answer.stderr for word in words), answer


def test_train_on_registered_hosts(world: Cluster):
    """Register, look, train with the output here, and forget: the bits are those of one process, and nothing stays behind."""
    world.boot("h1", "h2", "h3")
    site, job = Site(world, "h2", "h3 slots=1"), world.job()
    with concurrent.futures.ThreadPoolExecutor() as pool:  # two at once: one of them makes the cluster
        said = sorted(answer.stdout for answer in pool.map(lambda _: site.register("--price", "0.5"), range(2)))
    assert "lab has 2 hosts, h2 is the head; $1.00 an hour" in said[0] and "was registered already" in said[1], said
    seen = site.seen()
    assert [(host["name"], host["role"], host["answers"]) for host in seen["hosts"]] == [("h2", "head", True), ("h3", "worker", True)]
    assert seen["runner"] and seen["dollars_per_hour"] == 1.0 and seen["queue"] == str(site.folder())
    assert "lab" in world.run("cluster", "list").stdout
    site.train(job, epochs=2)
    assert state_hash(world, job.prefix) == world.alone(job, 2), "other bits"
    assert members_of(world.folder) == {"h2", "h3"}
    assert site.cluster("ssh", "h3", "--", "hostname").stdout == "h3\n"
    assert site.cluster("ssh", "--", "hostname").stdout == "h2\n"
    assert world.run("run", "--cluster", "lab", "--", "hostname").stdout.count("\n") == 2
    assert site.seen("health")["well"]
    assert site.cluster("ssh", "--write-config").stdout == "lab.h2\nlab.h3\n"
    assert world.lab["h1"].run("ssh", "-o", "BatchMode=yes", "lab.h3", "hostname").stdout == "h3\n"
    site.down()
    refused(site.cluster("status", check=False), 2)
    assert not (site.folder() / "cluster.json").exists()
    for name in ("h1", "h2", "h3"):
        left = world.lab[name].run("sh", "-c", "find ~/.dtrain -type f 2>/dev/null || true").stdout
        assert left == "", f"{name}: {left}"


@slow
def test_a_detached_job_outlives_its_user_and_a_host(world: Cluster):
    """A job of the queue trains on while the user's machine is off; a host is lost, and another one is added: the bits are
    those of a calm run. A host that is removed leaves the job first."""
    world.boot()
    site, job = Site(world, "h2", "h3"), world.job()
    site.register()
    given = site.train(job, "--detach", "--elastic", "--elastic-boundary", "step", epochs=100000)
    assert "job 1 is in the queue" in given.stdout, given
    site.wait_members("h2", "h3")
    world.lab["h3"].power_off()
    site.wait_members("h2")
    status = site.seen()
    assert {host["name"]: host["answers"] for host in status["hosts"]} == {"h2": True, "h3": False}
    assert [entry["state"] for entry in status["jobs"]] == ["running"]
    assert site.cluster("health", check=False).returncode == 20
    said = site.register("--price", 0.5)
    assert "$1.00 an hour" in said.stdout and "h3" in said.stderr and "stays a host of cluster lab" in said.stderr, said
    said = site.cluster("add", "h4")
    assert "h4 joins job 1" in said.stderr, said
    site.wait_members("h2", "h4")
    assert site.listed() == ["h2", "h3", "h4"]
    said = site.cluster("remove", "h4")
    assert "h4 has left job 1" in said.stderr and site.members() == {"h2"}, said
    removed = site.cluster("remove", "h3", check=False)
    assert removed.returncode == 3 and "not told" in removed.stderr, removed
    assert site.jobs("cancel", 1).stdout == "job 1: cancelled with a checkpoint\n"
    job.expect_bits_of_alone()
    texts = [event["event"] for event in site.seen("events")["events"]]
    assert texts[0] == "registered with 2 hosts, h2 is the head" and "h4 added" in texts and "h3 removed" in texts, texts
    site.down()


def test_down_ends_a_running_job(world: Cluster):
    """`down` saves a checkpoint of the job that runs, ends the agents of all hosts and the runner, and leaves the machines on.
    The same host file registers the cluster again, with its old jobs."""
    world.boot("h1", "h2", "h3")
    site, job = Site(world, "h2", "h3"), world.job()
    site.register()
    site.train(job, "--detach", "--elastic", "--elastic-boundary", "step", epochs=100000)
    site.wait_members("h2", "h3")
    refused(site.cluster("down", check=False), 2, "end 1 job on 2 hosts")
    assert "ended job 1" in site.cluster("down", "--yes").stdout
    world.expect_no_process_left()
    assert world.lab["h2"].answers() and world.lab["h3"].answers()
    site.register()
    assert (site.show(1)["state"], site.show(1)["why"]) == ("cancelled", "with a checkpoint")
    site.down()


def test_logins_that_print(world: Cluster):
    """Lines that .bashrc prints on all hosts stand in the way of no command, and in no document."""
    world.boot("h1", "h2", "h3")
    for host in ("h2", "h3"):
        world.lab[host].run("sh", "-c", "echo 'echo Welcome to $(hostname)' >~/.bashrc")
    site = Site(world, "h2", "h3")
    site.register()
    assert json.loads(site.jobs("list", "--json").stdout)["jobs"] == []
    assert "Welcome" not in site.cluster("status").stdout
    site.down()


@slow
def test_a_second_user_and_a_head_that_is_lost(world: Cluster):
    """Another person registers the same host file and sees the same queue; once the head is off, another host takes the queue,
    and the lost one can be removed."""
    world.boot()
    site = Site(world, "h2", "h3")
    site.register("--price", "h2=1")
    world.run("launch", "--cluster", "lab", "--detach", "-n", 1, "--", "true")
    assert site.jobs("wait", 1).returncode == 0
    words = ["cluster", "register", "lab", "--hosts", site.file, "--shared", world.folder]
    other = world.run_on("h4", *words)
    assert "was registered already" in other.stdout, other
    rows = json.loads(world.run_on("h4", "jobs", "list", "--cluster", "lab", "--json").stdout)["jobs"]
    assert [row["state"] for row in rows] == ["done"]
    refused(world.run_on("h4", *words, "--head", "h3", check=False), 2, "h2 is the head")
    site.write("h3")
    refused(world.run_on("h4", *words, check=False), 2, "other hosts: h2, h3")
    world.lab["h2"].crash()
    site.write("h2", "h3")
    refused(site.cluster("add", "h4", check=False), 4, "register lab --head")
    refused(site.register("--head", "h2", check=False), 4, "h2")
    said = site.register("--head", "h3")
    assert "h3 is the head" in said.stdout and "stays a host of cluster lab" in said.stderr, said
    assert site.show(1)["state"] == "done" and site.listed() == ["h3", "h2"]
    removed = site.cluster("remove", "h2", check=False)
    assert removed.returncode == 3 and site.listed() == ["h3"], removed
    site.down()


def test_a_head_without_a_key(world: Cluster):
    """Where the head cannot log in to the hosts, the cluster gets a key of its own, with the user's consent; `remove` and
    `down` take it away. A `register` that fails on one host takes it from none that has it."""
    world.lab["h2"].without("key")
    world.boot("h1", "h2", "h3")
    site, job = Site(world, "h2", "h3"), world.job()
    keys = {name: opened_by(world, name) for name in ("h2", "h3")}
    refused(site.register(check=False), 2, "cannot log in to 2 of 2 hosts", "--yes")
    assert opened_by(world, "h3") == keys["h3"]
    site.register("--yes")
    assert "restrict ssh-ed25519" in opened_by(world, "h3")
    keys_of_cluster = {name: opened_by(world, name) for name in keys}
    members = "~/.dtrain/members"
    world.lab["h3"].run("sh", "-c", f"mount --bind {members} {members} && mount -o remount,ro,bind {members}")
    refused(site.register("--yes", check=False), 4, "h3", "could not be made members")
    world.lab["h3"].run("sh", "-c", f"umount {members}")
    for name, opened in keys_of_cluster.items():
        assert opened_by(world, name) == opened, name
        assert world.lab[name].run("sh", "-c", f"ls {members}").stdout == f"{name}\n", "it is no member any more"
    site.train(job, epochs=1)
    assert members_of(world.folder) == {"h2", "h3"}
    site.down()
    for name, before in keys.items():
        assert opened_by(world, name) == before, name


def test_a_folder_that_another_user_made_first(world: Cluster):
    """In a shared folder where everybody may write, as /tmp: the key that lies there opens no host, and the user is told whose
    folder it is. Each user's clusters are safe from the others'."""
    world.lab["h2"].without("key")
    world.boot("h1", "h2", "h3")
    world.folder.chmod(0o1777)
    site, stranger = Site(world, "h2", "h3"), "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOlHn5s9n0Yb4vJ3eV8Xo1Sxk3u3cT7vVq9q2l4d0f3B stranger"
    keys = {name: opened_by(world, name) for name in ("h2", "h3")}
    site.folder().mkdir(parents=True)
    (site.folder() / "key.pub").write_text(f"{stranger}\n")
    os.chown(site.folder(), 4711, 4711)
    refused(site.register("--yes", check=False), 2, "dtrain-jobs/lab: it belongs to 4711, and not to root", "another name for the cluster")
    os.chown(site.folder(), 0, 0)
    site.folder().chmod(0o777)
    refused(site.register("--yes", check=False), 2, "dtrain-jobs/lab: other users may write there", "chmod go-w")
    assert {name: opened_by(world, name) for name in keys} == keys
    site.folder().chmod(0o755)
    site.register("--yes")
    opened = opened_by(world, "h3")
    assert opened.count("dtrain cluster lab") == 1 and "stranger" not in opened and stranger.split()[1] not in opened, opened
    (site.folder() / "cluster.json").chmod(0o666)
    refused(site.cluster("add", "h4", check=False), 4, "cluster.json: other users may write it, so it is not obeyed")
    (site.folder() / "cluster.json").chmod(0o600)
    site.down()
    assert {name: opened_by(world, name) for name in keys} == keys
    other = Site(world, "h2", "h3", name="other")
    os.rename(site.folder().parent, world.folder / "aside")
    other.register("--yes")
    assert other.folder().parent.stat().st_mode & 0o7777 == 0o1777 and other.folder().stat().st_mode & 0o777 == 0o755
    other.down()


@slow
def test_a_budget_by_given_prices(world: Cluster):
    """A spent budget stops the job with a checkpoint and starts no other; a larger one lets it go on. Unknown prices are never
    shown as nothing."""
    world.boot("h1", "h2")
    site, job = Site(world, "h2"), world.job()
    refused(site.register("--budget", 5, check=False), 2, "the price of h2 is unknown")
    said = site.register()
    assert "an unknown price (h2) an hour" in said.stdout, said
    assert "$0.00" not in site.cluster("cost").stdout
    site.register("--price", 36000, "--budget", 100000)  # ten dollars a second
    site.train(job, "--detach", epochs=100000)
    eventually(lambda: site.show(1)["state"] == "running", "it trains")
    site.register("--budget", 1)
    seen = site.wait_for(1, lambda seen: seen["state"] == "waiting" and "budget" in seen["why"], "it is stopped")
    assert "are spent" in seen["why"], seen
    cost = site.seen("cost")
    assert cost["budget"]["left"] == 0 and cost["dollars_so_far"] > 1, cost
    site.register("--budget", 10**9)
    site.wait_for(1, lambda seen: seen["state"] == "running" and seen["attempts"] == 2, "it goes on")
    site.down()


def test_hosts_that_cannot_be_registered(world: Cluster):
    """Each host that does not fit is named with its reason, and nothing of the cluster is made."""
    world.lab["h4"].without("share")
    world.boot("h1", "h2", "h4")
    site = Site(world, "h2", "h3")
    refused(site.register(check=False), 4, "h3")
    site.write("h2", world.lab["h2"].address)
    refused(site.register(check=False), 2, "are one machine, h2")
    site.write("h2", "h4")
    refused(site.register(check=False), 2, "is not the same folder on h4", "--shared")
    site.write("h2", "slots=2 what is this")
    refused(site.register(check=False), 2, "hosts")
    site.write("h2")
    refused(site.register("--head", "h9", check=False), 2, "--head h9")
    refused(site.register("--price", "cheap", check=False), 2, "'cheap' is no price")
    refused(site.register("--price", "h9=1", check=False), 2, "no host h9")
    assert not (site.folder() / "cluster.json").exists()
    assert world.lab["h2"].run("sh", "-c", "find ~/.dtrain -type f 2>/dev/null || true").stdout == ""
    world.lab["h2"].run("sh", "-c", "mv /bin/uname /bin/uname.real && printf '#!/bin/sh\\necho Linux riscv64\\n' >/bin/uname "
                        "&& chmod +x /bin/uname")
    refused(site.register(check=False), 4, "h2: it is Linux riscv64")
    world.lab["h2"].run("mv", "/bin/uname.real", "/bin/uname")
    site.register()
    other = Site(world, "h2", name="other")
    refused(other.register(check=False), 2, "h2 belongs to cluster lab")
    world.lab["h3"].boot().wait_for_ssh()
    elsewhere = ["cluster", "register", "other", "--hosts", other.file, "--shared", world.folder]
    refused(world.run_on("h3", *elsewhere, check=False), 2, "h2 belongs to cluster lab", "dtrain cluster remove")
    refused(world.run_on("h3", "cluster", "register", "lab", "--hosts", site.file, check=False), 2, "h2 belongs to cluster lab",
            "give the --shared FOLDER that cluster lab was registered with")
    refused(site.cluster("add", "h2", check=False), 2, "h2 is a host of cluster lab already")
    refused(site.cluster("add", world.lab["h2"].address, check=False), 2, "are one machine")
    refused(site.cluster("remove", "h2", check=False), 2, "is the head")
    for verb in ("up", "stop", "start", "watch", "plan", "logs", "env", "template", "iam-policy"):
        refused(site.cluster(verb, check=False), 2, "is one of registered hosts", "hint: ")
    refused(site.cluster("status", "--region", "eu-west-1", check=False), 2, "--region", "registered hosts")
    refused(site.cluster("down", "--delete-storage", check=False), 2, "--delete-storage")
    refused(world.run("launch", "--cluster", "lab", "--detach", "--down-when-done", "--", "true", check=False), 2,
            "--down-when-done")
    site.down()


# Keeps one file in the home folder, as crontab(1) keeps one for each user. It runs nothing: the test does, as cron would.
# Where ~/.kill is, it kills the program that asks.
CRONTAB = """#!/bin/sh
[ ! -e ~/.kill ] || { rm ~/.kill; kill -9 $PPID; exit 1; }
case "$1" in
-l) cat ~/.crontab 2>/dev/null || { echo 'no crontab for root' >&2; exit 1; } ;;
-) cat >~/.crontab ;;
esac
"""


@slow
def test_a_head_that_boots_starts_its_queue(world: Cluster):
    """By a line in its crontab, which `down` removes, also when the head was killed amid a first `down`. Without cron `--at-boot`
    is refused. A home folder of the lab is empty after a boot, unlike a real one: the test keeps it."""
    world.boot("h1", "h2")
    site, head = Site(world, "h2"), world.lab["h2"]
    if head.run("sh", "-c", "command -v crontab || true").stdout == "":
        refused(site.register("--at-boot", check=False), 2, "the head has no cron", "jobs list")
        assert not (site.folder() / "cluster.json").exists()
    head.run("sh", "-c", 'cat >"$0" && chmod 755 "$0"', "/usr/local/bin/crontab", text=CRONTAB)
    head.run("sh", "-c", "echo '1 2 * * * mine' | crontab -")
    site.register("--at-boot")
    world.run("launch", "--cluster", "lab", "--detach", "-n", 1, "--", "sleep", 3)
    head.run("sh", "-c", "tar -C ~ -cf /var/home.tar .dtrain .crontab")
    head.power_off()
    head.boot().wait_for_ssh()
    head.run("sh", "-c", "tar -C ~ -xf /var/home.tar")
    mine, line = head.run("crontab", "-l").stdout.splitlines()
    assert mine == "1 2 * * * mine" and line.startswith("@reboot ") and line.endswith("# dtrain cluster lab"), line
    command = line.removeprefix("@reboot ").replace("\\%", "%")
    head.run("sh", "-c", 'env -i HOME="$HOME" PATH=/usr/bin:/bin SHELL=/bin/sh setsid -f /bin/sh -c "$0" >/dev/null 2>&1', command)
    done = site.folder() / "0001/state.json"
    eventually(lambda: done.exists() and json.loads(done.read_text())["state"] == "done", "the job is done with no command of the user", 90)
    head.run("sh", "-c", "touch ~/.kill")
    cut = site.cluster("down", "--yes", check=False)
    assert cut.returncode == 4 and "forgotten" not in cut.stdout + cut.stderr, cut
    assert (site.folder() / "cluster.json").exists() and line in head.run("crontab", "-l").stdout
    site.down()
    assert not (site.folder() / "cluster.json").exists()
    assert head.run("crontab", "-l").stdout == "1 2 * * * mine\n"
