"""Another user of a machine on which a job runs."""

import json
import subprocess
import sys

from cluster import Cluster
from strangers import OTHER_USER, as_other_user
from world import Job, listening_places

# The kernel gives ports to listeners of the job from this range, so that all their names can be taken before.
FIRST, LAST = 41000, 41199
# Takes every name that workers of this machine may meet at, and every tenth port; keeps what it is sent.
SQUAT = """
import contextlib, resource, select, socket, sys
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
first, last = int(sys.argv[1]), int(sys.argv[2])
held = []
for port in range(first, last + 1):
    for address in ("127.0.0.1", sys.argv[3]):
        one = socket.socket(socket.AF_UNIX)
        one.bind(f"\\0dtrain-data {address} {port}")
        one.listen(8)
        held.append(one)
        if port % 10 == 0:
            with contextlib.suppress(OSError):
                held.append(socket.create_server((address, port)))
print("squats", flush=True)
calls = 0
got = b""
while True:
    ready, _, _ = select.select([sys.stdin, *held], [], [])
    if sys.stdin in ready:
        break
    for one in ready:
        if one in held and one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            calls += 1
            held.append(one.accept()[0])
        else:
            piece = one.recv(1 << 16)
            got += piece
            if not piece:
                held.remove(one)
print(calls, len(got), flush=True)
"""
# Connects to every Unix socket and port of the job and says what it got from each.
CALL = """
import json, socket, sys
got = {}
for name in [line.rstrip("\\n").split("@", 1)[1] for line in open("/proc/net/unix") if "@dtrain-data" in line]:
    with socket.socket(socket.AF_UNIX) as one:
        one.settimeout(10)
        try:
            one.connect("\\0" + name)
            one.sendall(b"hello")
            got[name] = one.recv(100).hex()
        except OSError:
            got[name] = ""
for word in sys.argv[1:]:
    address, port = word.split(":")
    with socket.create_connection((address, int(port)), 10) as one:
        one.sendall(b"GET / HTTP/1.1\\r\\n\\r\\n")
        try:
            got[word] = one.recv(100).hex()
        except OSError:
            got[word] = ""
print(json.dumps(got))
"""


def local_job(world: Cluster, **options) -> Job:
    job = Job(world, "job", launcher="local", **options)
    world.jobs.append(job)
    return job


def test_a_squatter_gets_no_byte(world: Cluster):
    """Another user takes the names and a tenth of the ports at which workers of this machine may meet: they notice, send
    nothing, meet elsewhere, and compute the same bits."""
    world.boot("h1")
    host = world.lab["h1"]
    host.run("sh", "-c", f"echo {FIRST} {LAST} >/proc/sys/net/ipv4/ip_local_port_range")
    squatter = subprocess.Popen(
        host.command([*OTHER_USER, sys.executable, "-c", SQUAT, FIRST, LAST, host.address]),
        env=host.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert squatter.stdout.readline() == "squats\n"
    job = local_job(world, hosts=4, epochs=2).start().finish()
    squatter.stdin.close()
    calls, size = map(int, squatter.stdout.readline().split())
    squatter.wait()
    print(f"   {calls} connections reached the squatter")
    assert calls > 0, "the squatter was in no one's way"
    assert size == 0, f"{size} bytes went to the squatter"
    assert job.state_hash() == world.alone(job, 2), "other bits"


def test_another_user_of_the_machine_gets_nothing(world: Cluster):
    """Another user sees processes and ports of a job: no token, no answer, no right to change it, and no signal reaches it."""
    world.boot("h1")
    host = world.lab["h1"]
    world.folder.chmod(0o755)
    job = local_job(world).start().wait_running()
    before = job.training()
    token = json.loads((job.folder / "coordinator.json").read_text())["token"]
    assert as_other_user(host, "cat", job.folder / "coordinator.json").returncode != 0
    assert as_other_user(host, world.program, "hosts", "list", "--job-dir", job.folder).returncode != 0
    assert as_other_user(host, world.program, "stop", "--job-dir", job.folder).returncode != 0
    shown = as_other_user(host, "sh", "-c", "cat /proc/*/cmdline /proc/*/environ 2>/dev/null; "
                          f"find {world.folder} /tmp /run/dtrain* -type f -readable -exec cat {{}} + | tr -d '\\0'; kill -9 -1")
    assert "shapes_train.rec" in shown.stdout and token not in shown.stdout
    places = [f"{address if address != '0.0.0.0' else host.address}:{port}"
              for address, port in listening_places(host.processes("dtrain"))]
    got = json.loads(as_other_user(host, sys.executable, "-c", CALL, *places).stdout)
    assert len(got) >= 4 and any(" " in name for name in got), got
    # An alert of TLS at most: seven bytes.
    assert all(len(answer) <= 14 for answer in got.values()), got
    job.wait_steps(5)
    assert job.training() == before
    job.stop()
