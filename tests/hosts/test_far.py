"""Data behind s3:// for a job over ssh."""

import pathlib
import subprocess
import sys

from cluster import Cluster
from lab import NET, command_line

SERVER = pathlib.Path(__file__).parents[1] / "net/s3_server.py"


def test_workers_elsewhere_borrow_what_reads_the_bucket(world: Cluster):
    """Only the coordinator's machine has keys: workers on others read the records with them, and keep them nowhere."""
    world.boot("h1", "h2")
    server = subprocess.Popen([sys.executable, SERVER, f"{NET}.1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        world.environment |= {"AWS_ENDPOINT_URL_S3": f"http://{NET}.1:{server.stdout.readline().strip()}",
                              "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}
        for part in ("train", "val"):
            for ending in ("rec", "idx"):
                name = f"shapes_{part}.{ending}"
                world.run("data", "cp", world.data / name, f"s3://bucket/{name}")
        far = ["--data-train", "s3://bucket/shapes_train.rec", "--data-val", "s3://bucket/shapes_val.rec"]
        job = world.job(hosts=["h2"], data=far).start().wait_running()
        worker = job.training()["h2"]
        told = pathlib.Path(f"/proc/{worker}/environ").read_bytes()
        assert b"AWS_REGION=us-east-1" in told and b"AWS_SECRET_ACCESS_KEY" not in told and b"AWS_ACCESS_KEY_ID" not in told
        assert "secret" not in command_line(worker)
        job.wait_steps(2).stop()
        kept = [path for path in job.folder.rglob("*") if path.is_file() and b"AWS_SECRET" in path.read_bytes()]
        assert not kept, f"the keys are in {kept}"
    finally:
        server.stdin.close()
        server.wait()
