"""`dtrain doctor security`: the ports and files of jobs that run, and of one that ended."""

import json
import pathlib

from world import World, eventually


def diagnose(world: World, folder: pathlib.Path, code: int = 0) -> dict:
    answer = world.run("doctor", "security", "--job-dir", folder, "--json", check=False)
    assert answer.returncode == code, f"exit {answer.returncode}\n{answer.stdout}\n{answer.stderr}"
    document = json.loads(answer.stdout)
    assert document["schema"] == "dtrain.doctor-security/1"
    assert all(finding["level"] == "fine" or finding["why"] and finding["fix"] for finding in document["findings"]), document
    return document


def levels(document: dict, about: str) -> set[str]:
    return {finding["level"] for finding in document["findings"] if finding["about"] == about}


def test_ports_of_a_training_job(world: World):
    """Every port of coordinator, agents and workers is listed with its process, and is TLS or a Unix socket of the user."""
    job = world.job().start().wait_running()
    workers = set(job.training().values())
    found = diagnose(world, job.folder)
    roles = {port["role"]: port for port in found["ports"]}
    assert {"coordinator", "agent", "worker"} <= set(roles), found["ports"]
    assert {port["process"] for port in found["ports"] if port["role"] == "worker"} == workers
    assert roles["coordinator"]["process"] == json.loads((job.folder / "coordinator.json").read_text())["pid"]
    assert {port["protection"] for port in found["ports"]} == {"tls", "same-user"}, found["ports"]
    assert {port["reachable_from"] for port in found["ports"]} == {"this machine"}
    assert found["data"] == "tls" and found["running"] and not found["runs_program"]
    assert levels(found, "port") == {"fine"} and levels(found, "data") == {"fine"}
    job.stop()


def test_a_token_that_others_can_read(world: World):
    """A readable coordinator.json is a problem, and so is a job folder that everybody may write to; exit code 1."""
    job = world.job().start().wait_running()
    secret = job.folder / "coordinator.json"
    assert [file["readers"] for file in diagnose(world, job.folder)["files"] if file["secret"]] == ["owner"]
    secret.chmod(0o644)
    found = diagnose(world, job.folder, code=1)
    fixes = [finding["fix"] for finding in found["findings"] if finding["level"] == "problem"]
    assert len(fixes) == 1 and fixes[0].startswith(f"chmod 600 {secret}"), fixes
    secret.chmod(0o600)
    diagnose(world, job.folder)
    job.folder.chmod(0o777)
    assert "problem" in levels(diagnose(world, job.folder, code=1), "file")
    job.folder.chmod(0o755)
    job.stop()
    ended = diagnose(world, job.folder)
    assert not ended["running"] and ended["ports"] == []
    assert not any(file["secret"] for file in ended["files"]), "the token is gone"


def test_waiting_hosts_and_queues(world: World):
    """Who may write orders for a host that waits, or the jobs of a queue, is looked at before the first job, too."""
    waiting = world.folder / "job/waiting"
    waiting.mkdir(parents=True)
    waiting.chmod(0o777)
    found = diagnose(world, waiting.parent, code=1)
    assert f"chmod o-w {waiting}" in [finding["fix"] for finding in found["findings"]] and not found["running"]
    waiting.chmod(0o700)
    diagnose(world, waiting.parent)
    queue = world.folder / "q"
    world.run("launch", "--detach", "--job-queue", queue, "--", "true")
    assert {file["use"] for file in diagnose(world, queue)["files"]} >= {"queued job", "queued command"}
    (queue / "0001/spec.json").chmod(0o644)
    fixes = [finding["fix"] for finding in diagnose(world, queue, code=1)["findings"] if finding["level"] == "problem"]
    assert fixes == [f"chmod 600 {queue}/0001/spec.json"], fixes
    (queue / "0001/spec.json").chmod(0o600)
    queue.chmod(0o777)
    diagnose(world, queue, code=1)


def test_a_transport_without_protection(world: World):
    """--transport gloo is a warning with its fix: its own connections are neither encrypted nor authenticated."""
    job = world.job(elastic=False, arguments=["--transport", "gloo"]).start().wait_running()
    found = diagnose(world, job.folder)
    assert found["data"] == "gloo" and levels(found, "data") == {"warning"}
    assert not any(port["use"] == "gradients" for port in found["ports"] if port["port"]), found["ports"]
    job.stop()


def test_ports_of_a_program(world: World):
    """A program under `dtrain launch` that listens on all addresses is a warning with its port."""
    script = world.folder / "listens.py"
    script.write_text("import socket, time\none = socket.socket()\none.bind(('0.0.0.0', 0))\none.listen()\n"
                      "open('port', 'w').write(str(one.getsockname()[1]))\ntime.sleep(1000)\n")
    folder = world.folder / "launched"
    world.run("launch", "-n", 1, "--detach", "--job-dir", folder, "--", "/usr/bin/python3", script)
    port = int(eventually(lambda: (world.folder / "port").exists() and (world.folder / "port").read_text(), "it listens"))
    found = diagnose(world, folder)
    open_ports = [one for one in found["ports"] if one["port"] == port]
    assert len(open_ports) == 1 and open_ports[0]["role"] == "program", found["ports"]
    assert open_ports[0]["protection"] == "none" and open_ports[0]["reachable_from"] == "other machines"
    assert "warning" in levels(found, "port") and levels(found, "program") == {"note"} and found["runs_program"]
    world.run("stop", "--job-dir", folder, "--now")
