"""Those who do not know the token get nothing, and the token is nowhere to be read."""

import json
import os
import pathlib
import socket
import subprocess

from world import World, eventually, listening_places


def test_garbage_on_every_port(world: World):
    """Garbage, silence and half a greeting on every port that the job listens on: it goes on as before."""
    job = world.job().start().wait_running()
    before = job.training()
    ports = eventually(lambda: {port for _, port in listening_places(world.processes())}, "ports are found", job=job)
    assert len(ports) >= 3, ports
    silent = []
    for port in ports:
        for _ in range(5):
            for garbage in (os.urandom(4000), b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 64, b"\0" * 16, b""):
                try:
                    one = socket.create_connection(("127.0.0.1", port), 2)
                    one.sendall(garbage)
                    silent.append(one) if not garbage else one.close()
                except OSError:
                    pass
    job.wait_steps(30)
    assert job.training() == before, "strangers changed the job"
    for one in silent:
        one.close()
    job.stop()


def test_token_is_secret(world: World):
    """The job's token stands in no command line, no environment and no file but its owner's coordinator.json."""
    job = world.job().start().wait_running()
    document = job.folder / "coordinator.json"
    token = json.loads(document.read_text())["token"]
    assert len(token) >= 32 and document.stat().st_mode & 0o077 == 0
    for pid in world.processes():
        for name in ("cmdline", "environ"):
            assert token.encode() not in pathlib.Path(f"/proc/{pid}/{name}").read_bytes(), f"{name} of {pid}"
    found = subprocess.run(["grep", "-rlF", token, str(world.folder)], capture_output=True, text=True, check=False)
    assert found.stdout.split() == [str(document)], found.stdout
    job.stop()
    assert token not in document.read_text(), "the token outlives the job"
