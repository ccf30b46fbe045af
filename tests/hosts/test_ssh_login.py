"""Keys in an ssh agent, and what a login prints: as the user's own configuration of ssh says."""

import os

from cluster import AGENT, Cluster
from lab import SFTP_SERVERS
from runner import Skip

HOME = "~/.ssh"


def have_agent(world: Cluster, *, others: int = 0, locked: bool = False) -> None:
    """h1 has the key of the lab as the user's ~/.ssh/work, and in an agent that holds others before it."""
    lines = ["set -e", "umask 77", f"export SSH_AUTH_SOCK={AGENT}", f"ssh-agent -a {AGENT} >/dev/null", f"rm -f {HOME}/id_*",
             f"cat >{HOME}/work", f"ssh-keygen -y -f {HOME}/work >{HOME}/work.pub"]
    for one in range(others):
        lines += [f"ssh-keygen -q -t ed25519 -N '' -f /run/other{one}", f"ssh-add -q /run/other{one}"]
    lines += [f"ssh-add -q {HOME}/work", f"ssh-keygen -q -p -P '' -N secret -f {HOME}/work" if locked else f"rm {HOME}/work"]
    world.lab["h1"].run("sh", "-c", "\n".join(lines), text=world.key())
    world.environment |= {"SSH_AUTH_SOCK": AGENT}


def configure(world: Cluster, *lines: str) -> None:
    world.lab["h1"].run("sh", "-c", f"cat >{HOME}/config", text="Host *\n" + "".join(f"  {line}\n" for line in lines))


def hostname(world: Cluster, check: bool = True):
    """`dtrain run` of it on h2."""
    return world.run("run", "-H", hosts(world), "--accept-new-hosts", "--", "hostname", check=check)


def hosts(world: Cluster):
    """A file of hosts with h2."""
    (world.folder / "hosts").write_text("h2\n")
    return world.folder / "hosts"


def test_an_agent_opens_a_locked_key_with_identities_only(world: Cluster):
    """The private key has a passphrase, and the agent has it: as with ssh, IdentitiesOnly means the agent's key of that file."""
    world.boot("h1", "h2")
    have_agent(world, locked=True)
    for key in ("work", "work.pub"):
        configure(world, f"IdentityFile {HOME}/{key}", "IdentitiesOnly yes")
        assert "h2" in hostname(world).stdout
    configure(world, f"IdentityFile {HOME}/another", "IdentitiesOnly yes")
    refused = hostname(world, check=False)
    assert refused.returncode != 0 and "the agent (IdentitiesOnly)" in refused.stderr, refused.stderr


def test_the_key_that_is_named_is_offered_first(world: Cluster):
    """sshd hears six keys, and the agent holds eight."""
    world.boot("h1", "h2")
    have_agent(world, others=7)
    refused = hostname(world, check=False)
    assert refused.returncode != 0 and "Too many authentication failures" in refused.stderr, refused.stderr
    assert "IdentityFile" in refused.stderr, refused.stderr
    configure(world, f"IdentityFile {HOME}/work.pub")
    assert "h2" in hostname(world).stdout


def test_a_login_that_prints_is_named(world: Cluster):
    """sshd runs the SFTP server by the user's shell, whose .bashrc speaks."""
    h2, server = world.lab["h2"], next(filter(os.path.exists, SFTP_SERVERS), None)
    if not server:
        raise Skip("no program sftp-server here")
    (h2.disk / "sftp").write_text(f"{server}\n")
    world.boot("h1", "h2")
    (world.folder / "tree").mkdir()
    (world.folder / "tree/file").write_text("text\n")
    words = ("sync", world.folder / "tree", "/srv/tree", "-H", hosts(world), "--accept-new-hosts")
    world.run(*words)
    h2.run("sh", "-c", "echo 'echo Welcome to $(hostname)' >~/.bashrc")
    refused = world.run(*words, check=False)
    assert refused.returncode != 0 and "not SFTP: 'Welcome to h2" in refused.stderr, refused.stderr
    assert "let .bashrc print only in interactive shells" in refused.stderr and "closed" not in refused.stderr, refused.stderr
