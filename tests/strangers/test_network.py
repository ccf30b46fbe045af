"""Strangers on the network of a job: one listens, one stands between two parties, one is a crowd."""

import json
import pathlib
import sys
import time

from cluster import Cluster
from strangers import Recording, Relay, crowd, share_left_by_zlib
from world import eventually, listening_places

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "launch"))

from launches import Launch, PYTHON  # noqa: E402

CROWD = 1000  # connections to each port
MEASURED = 200  # steps


def record_job(world: Cluster, name: str, *arguments) -> tuple[Recording, str]:
    """What a listener at the cable of h2 gets of a job, and the job's token."""
    with Recording(world.lab["h2"]) as recording:
        job = world.job(name, arguments=arguments).start().wait_running().wait_steps(30)
        token = json.loads((job.folder / "coordinator.json").read_text())["token"]
        job.stop()
    assert len(recording.largest()) > 1 << 20, "the recording holds no gradients"
    return recording, token


def test_a_listener_learns_neither_token_nor_gradients(world: Cluster):
    """Every byte between two machines is recorded: the token is not among them, no message can be read, and gradients
    cannot be told from random bytes. With --plain-data gradients can be read, and the token cannot."""
    world.boot("h1", "h2")
    hidden, token = record_job(world, "hidden")
    plain, plain_token = record_job(world, "plain", "--plain-data")
    for recording, secret in ((hidden, token), (plain, plain_token)):
        everything = recording.everything()
        assert secret.encode() not in everything and bytes.fromhex(secret) not in everything
    for word in (b'"generation"', b'"worker"', b'"token"', b'"samples', b"shapes_train.rec"):
        assert word not in hidden.everything(), word
    encrypted, readable = share_left_by_zlib(hidden.largest()), share_left_by_zlib(plain.largest())
    print(f"   zlib leaves {encrypted:.3f} of encrypted gradients, {readable:.3f} of plain ones")
    assert encrypted > 0.999 and readable < 0.99


def test_a_relay_can_only_end_a_connection(world: Cluster):
    """What a command and the coordinator say goes through a relay. It passes bytes on; a changed, an added and a repeated
    byte end the connection, and the job goes on as before."""
    world.boot("h1", "h2")
    job = world.job().start().wait_running()
    before = job.training()
    document = json.loads((job.folder / "coordinator.json").read_text())
    relay = Relay((world.lab["h1"].address, document["port"]), "10.77.0.1")
    elsewhere = world.folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "coordinator.json").write_text(json.dumps(document | {"addresses": ["10.77.0.1"], "port": relay.port}))
    (elsewhere / "coordinator.json").chmod(0o600)

    def asks() -> bool:
        answer = world.run("hosts", "list", "--job-dir", elsewhere, "--json", check=False)
        return answer.returncode == 0 and len(json.loads(answer.stdout)["hosts"]) == 2
    assert asks(), "the relay is in no one's way"
    said = relay.sent
    for at in (len(said) // 2 + 100, len(said) - 5):  # in the proof of the token, and in the request
        relay.change = lambda past, piece, at=at: bytes(
            byte ^ (past + i == at) for i, byte in enumerate(piece))
        assert not asks(), f"byte {at} was changed, and nobody saw it"
    relay.change = lambda past, piece: (said[-40:] if past > 0 else b"") + piece
    assert not asks(), "an added message was believed"
    relay.change = lambda past, piece: said if past == 0 else b""
    assert not asks(), "a recorded connection was believed"
    relay.close()
    job.wait_steps(5)
    assert job.training() == before
    job.stop()


def places_of(world: Cluster, *names: str) -> list[tuple[str, int]]:
    """What processes of dtrain on these machines listen on: each at the machine's own address, and the coordinator, on the
    first machine, at all addresses."""
    places = set()
    for name in names:
        own = world.lab[name].address
        found = listening_places(world.lab[name].processes("dtrain"))
        everywhere = [port for address, port in found if address == "0.0.0.0"]
        assert {address for address, _ in found} <= {own, "0.0.0.0"} and len(everywhere) == (name == names[0]), found
        places |= {(own, port) for _, port in found}
    assert len(places) >= 5, places
    return sorted(places)


def seconds_of_steps(job, steps: int) -> float:
    first, start = job.steps_done(), time.monotonic()
    eventually(lambda: job.steps_done() >= first + steps, f"{steps} steps are done", 180, job=job)
    return (time.monotonic() - start) / (job.steps_done() - first)


def test_a_crowd_at_every_port_keeps_no_member_out(world: Cluster):
    """A machine holds 1000 idle and slow connections to each port of a job on two others: the job goes on, commands are
    answered, a new machine joins, and the bits stay those of a run that nothing disturbed."""
    world.boot("h1", "h2", "h3", "h4")
    job = world.job(hosts=["h1", "h2"]).start().wait_running()
    alone = seconds_of_steps(job, MEASURED)
    places = places_of(world, "h1", "h2")
    with crowd(world.lab["h4"], places, CROWD):
        crowded = seconds_of_steps(job, MEASURED)
        job.hosts_command("add", "h3")
        job.wait_members("h1", "h2", "h3")
        job.wait_steps(5)
        job.hosts_command("remove", "h3")
        job.wait_members("h1", "h2")
    alone = (alone + seconds_of_steps(job, MEASURED)) / 2
    print(f"   {1000 * alone:.1f} ms a step; {1000 * crowded:.1f} ms ({100 * (crowded / alone - 1):+.0f} %) "
          f"with {CROWD} strangers at each of {len(places)} ports")
    job.expect_undisturbed_bits()


def test_a_crowd_at_the_rendezvous_of_launch_keeps_no_rank_out(world: Cluster):
    """The same at the ports that dtrain opens for PyTorch and Horovod: the ranks of a program meet there."""
    world.boot("h1", "h2", "h4")
    (world.folder / "hosts").write_text("h1\nh2\n")
    (world.folder / "meet.py").write_text((HERE / "meet.py").read_text())
    world.jobs.append(job := Launch(
        world, "job", [PYTHON, world.folder / "meet.py", world.folder],
        ["-H", world.folder / "hosts", "--framework", "horovod", "--log-dir", world.folder / "logs"]))
    job.start()
    eventually(lambda: all((world.folder / f"rank{rank}").exists() for rank in (0, 1)), "both ranks run", job=job)
    places = places_of(world, "h1", "h2")
    with crowd(world.lab["h4"], places, CROWD):
        (world.folder / "go").touch()
        assert job.wait() == 0, job.said()
