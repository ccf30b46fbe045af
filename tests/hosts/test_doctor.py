"""`dtrain doctor -H` on machines: what is wrong between them, and nothing else."""

import json

from cluster import Cluster

SHARED_JOB = "/run/lab/shared/examined"


def examine(world: Cluster, *hosts: str) -> dict:
    (world.folder / "hosts").write_text("".join(f"{host}\n" for host in hosts))
    answer = world.run("doctor", "-H", world.folder / "hosts", "--job-dir", SHARED_JOB, "--accept-new-hosts", "--json",
                       "--connect-timeout", 30, check=False)
    return json.loads(answer.stdout)


def test_a_login_that_prints(world: Cluster):
    """A line that .bashrc prints before the answer of a host is not taken for the answer."""
    world.boot("h1", "h2", "h3")
    world.lab["h1"].run("mkdir", "-p", SHARED_JOB)
    world.lab["h2"].run("sh", "-c", "echo 'echo Welcome to $(hostname)' >~/.bashrc")
    report = examine(world, "h2", "h3")
    assert faults(report) == [], report["together"]
    assert all(link["reached"] for host in report["hosts"] for link in host["links"].values()), report["hosts"]


def faults(report: dict) -> list[str]:
    return [finding["what"] for finding in report["together"] if finding["level"] != "fine"]


def test_hosts_together(world: Cluster):
    """Healthy hosts are fine; a way that is closed is told for both of its ends, a machine without the share as well."""
    world.boot("h1", "h2", "h3")
    world.lab["h1"].run("mkdir", "-p", SHARED_JOB)
    report = examine(world, "h1", "h2", "h3")
    assert faults(report) == [], report["together"]
    assert all(link["reached"] for host in report["hosts"] for link in host["links"].values()), report["hosts"]

    world.lab["h4"].without("share")
    world.boot("h4")
    world.lab["h4"].run("mkdir", "-p", SHARED_JOB)
    world.lab["h2"].run("ip", "route", "add", "blackhole", world.lab["h3"].address)
    found = faults(examine(world, "h1", "h2", "h3", "h4"))
    closed = [fault.split(":")[0] for fault in found if "does not reach" in fault]
    assert closed == ["h2 does not reach h3", "h3 does not reach h2"], found
    assert f"h4: {SHARED_JOB} does not hold the files of h1, h2, h3" in found, found
    assert f"h1: {SHARED_JOB} does not hold the files of h4" in found, found
