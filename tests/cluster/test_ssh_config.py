"""Names of nodes for ssh, requirement 24: the entries in ~/.ssh/config, verified with ssh itself."""

import subprocess

import pytest
from cloud import UP

THEIRS = "# mine\nHost *.example.org\n\tUser me"


@pytest.fixture
def ssh(cloud):
    """The folder ~/.ssh with the user's own configuration, and a cluster."""
    folder = cloud.folder / "home/.ssh"
    folder.mkdir(mode=0o700)
    (folder / "config").write_text(THEIRS)
    (folder / "config").chmod(0o640)
    cloud.cluster("up", "demo", "-w", 1, "--ami", cloud.image(), *UP)
    return folder


def meant(ssh, host):
    """{option: value}, as ssh understands its configuration."""
    told = subprocess.run(["ssh", "-G", "-F", ssh / "config", host], capture_output=True, text=True, check=True).stdout
    return dict(line.split(" ", 1) for line in told.splitlines())


def addresses(cloud):
    return {node["name"]: node["public_ip"] or node["private_ip"] for node in cloud.json("status", "demo")["nodes"]}


def test_r24_nodes_have_names_for_ssh_that_follow_the_cluster_and_vanish_with_it(cloud, ssh):
    assert (ssh / "config").read_text() == THEIRS  # unchanged so far
    said = cloud.cluster("ssh", "demo", "--write-config").stdout
    assert said == "demo.head\ndemo.w0001\n"
    there = addresses(cloud)
    head = meant(ssh, "demo.head")
    assert (head["hostname"], head["user"], head["forwardagent"]) == (there["head"], "ubuntu", "no")
    assert head["userknownhostsfile"] == str(cloud.folder / "home/.dtrain/clusters/demo/known_hosts")
    assert meant(ssh, "demo.w0001")["hostname"] == there["w0001"]
    assert meant(ssh, "x.example.org")["user"] == "me"
    cloud.cluster("add", "demo", 1, "--yes", "--no-wait")
    assert meant(ssh, "demo.w0002")["hostname"] == addresses(cloud)["w0002"]
    cloud.cluster("remove", "demo", "w0002", "--yes", "--force")
    assert meant(ssh, "demo.w0002")["hostname"] == "demo.w0002"
    cloud.cluster("down", "demo", "--yes")
    assert meant(ssh, "demo.head")["hostname"] == "demo.head"
    assert (ssh / "config").read_text() == THEIRS


def test_r24_the_person_s_file_keeps_its_lines_its_mode_and_its_place(cloud, ssh):
    place = cloud.folder / "dotfiles"
    (ssh / "config").rename(place)
    (ssh / "config").symlink_to(place)
    for _ in range(2):
        subprocess.run(["sh", "-c", 'umask 077; exec "$@"', "sh", cloud.program, "cluster", "ssh", "demo", "--write-config"],
                       env=cloud.environment, check=True)
    include, rest = place.read_text().split("\n", 1)
    assert include.startswith("Include ") and rest == THEIRS
    assert (ssh / "config").is_symlink() and place.stat().st_mode & 0o777 == 0o640
    assert sorted(entry.name for entry in ssh.iterdir()) == ["config"]


def test_r24_the_line_stays_while_another_cluster_has_names(cloud, ssh):
    cloud.cluster("up", "other", "-w", 0, "--ami", cloud.image(), *UP)
    for name in ("demo", "other"):
        cloud.cluster("ssh", name, "--write-config")
    cloud.cluster("down", "demo", "--yes")
    assert meant(ssh, "other.head")["user"] == "ubuntu" and meant(ssh, "demo.head")["hostname"] == "demo.head"
    cloud.cluster("down", "other", "--yes")
    assert (ssh / "config").read_text() == THEIRS


def test_r24_a_file_that_was_not_there_is_made_for_its_owner_alone(cloud, ssh):
    (ssh / "config").unlink()
    ssh.rmdir()
    assert cloud.json("ssh", "demo", "--write-config")["hosts"] == ["demo.head", "demo.w0001"]
    assert ssh.stat().st_mode & 0o777 == 0o700 and (ssh / "config").stat().st_mode & 0o777 == 0o600
    cloud.cluster("ssh", "none-such", "--write-config", status=2)


@pytest.mark.parametrize("tag", ["w0001 github.com", "w0001\n  ProxyCommand touch /x", "*"])
def test_r24_a_tag_that_is_no_name_reaches_no_configuration(cloud, ssh, tag):
    """Whoever may change tags chooses neither other hosts for this machine nor commands."""
    worker = next(one["InstanceId"] for one in cloud.of_cluster("demo") if cloud.tags(one["InstanceId"])["dtrain:node"] == "w0001")
    cloud.ec2.create_tags(Resources=[worker], Tags=[{"Key": "dtrain:node", "Value": tag}])
    assert cloud.cluster("ssh", "demo", "--write-config").stdout == f"demo.head\ndemo.{worker}\n"
    written = (cloud.folder / "home/.dtrain/clusters/demo/ssh_config").read_text()
    assert "github.com" not in written and "ProxyCommand" not in written and "*" not in written
    assert meant(ssh, "github.com")["hostname"] == "github.com" and meant(ssh, f"demo.{worker}")["hostname"] == addresses(cloud)[worker]
