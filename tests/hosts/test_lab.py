"""The machines themselves: what the other suites take for granted."""

from cluster import Cluster
from lab import wait_for

SSH = ["ssh", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o", "ConnectTimeout=2"]


def test_machines_are_apart(world: Cluster):
    """Each has its own name, processes and files; the shared folder is the same for all, and ssh leads everywhere."""
    world.boot("h1", "h2")
    h1, h2 = world.lab["h1"], world.lab["h2"]
    assert h1.run(*SSH, "h2", "hostname").stdout == "h2\n"
    h1.run("touch", "/srv/of-h1", world.folder / "of-all")
    assert h2.run("ls", world.folder / "of-all").returncode == 0
    assert h2.run("ls", "/srv/of-h1", check=False).returncode != 0
    assert "sshd" in h1.run("ps", "-e").stdout and "python" not in h1.run("ps", "-e").stdout


def test_a_cut_is_silent_and_heals(world: Cluster):
    """A machine that is cut off answers nobody; healed it answers again, and none of its processes noticed."""
    world.boot("h1", "h2")
    h1, h2 = world.lab["h1"], world.lab["h2"]
    h2.partition()
    assert h1.run(*SSH, "h2", "true", check=False).returncode == 255
    h2.heal()
    wait_for(lambda: h1.run(*SSH, "h2", "true", check=False).returncode == 0, "h2 answers again")


def test_a_machine_restarts_with_its_disk(world: Cluster):
    """A crash ends every process of it; its files are there when it is booted again."""
    world.boot("h1", "h2")
    h2 = world.lab["h2"]
    h2.run("sh", "-c", "echo kept >/srv/file")
    h2.crash()
    assert not h2.answers()
    h2.boot().wait_for_ssh()
    assert h2.run("cat", "/srv/file").stdout == "kept\n"


def test_a_cut_takes_the_shared_folder(world: Cluster):
    """A folder behind the network is an error for a machine that is cut off, and the same as before once it is healed."""
    world.lab.share_by_network()
    world.boot("h1", "h2")
    h1, h2 = world.lab["h1"], world.lab["h2"]
    h1.run("sh", "-c", f"echo first >{world.folder}/file && ln {world.folder}/file {world.folder}/link")
    h1.partition()
    assert h1.run("sh", "-c", f"echo second >>{world.folder}/file", check=False).returncode != 0
    assert h2.run("cat", world.folder / "link").stdout == "first\n"
    h1.heal()
    wait_for(lambda: h1.run("sh", "-c", f"echo third >>{world.folder}/file", check=False).returncode == 0, "it is back")
    assert h2.run("cat", world.folder / "link").stdout == "first\nthird\n"
    assert any("/file" in line for line in h1.written()) and not h2.written()
