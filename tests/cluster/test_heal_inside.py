"""`cluster watch --heal` on machines: what they report of themselves, and how a worker goes that a job still uses. The
stand-in for nvidia-smi prints what a real one may print; it shows nothing of a GPU."""

import json
import os
import signal

import pytest

if "DTRAIN_CLUSTER_LAB" not in os.environ:
    pytest.skip("machines need namespaces: tests/cluster/run.sh makes them", allow_module_level=True)

from machines import lab  # noqa: E402
from test_site import laptop, private  # noqa: E402, F401

ELASTIC = ("--elastic", "--elastic-boundary", "step", "--num-epochs", 100000, "--model-prefix", "m/run")


def trouble(cloud, name):
    return next(node["trouble"] for node in cloud.json("status", "demo")["nodes"] if node["name"] == name)


def instances(cloud):
    return {one["InstanceId"] for one in cloud.of_cluster("demo")}


def texts(cloud):
    return [event["text"] for event in cloud.json("events", "demo")["events"]]


def log_of(host):
    """ADDED and REMOVED of a host, with their numbers."""
    lines = [line.split() for line in (lab.SHARED / "host_worker_log").read_text().splitlines()]
    return {word: int(number) for number, word, name, _ in lines if name == host}


def forecast_of(cloud):
    answer = cloud.cluster("cost", "demo", "--forecast", "--json", status=None)
    return json.loads(answer.stdout)["forecast"] if answer.returncode == 0 else None


def watch(laptop):
    process = laptop.start("watch", "cluster", "watch", "demo", "--heal", "--every", 1)

    def end():
        process.send_signal(signal.SIGINT)
        process.wait(60)
    return end


@pytest.mark.slow
def test_a_machine_that_is_to_go_leaves_once_its_successor_trains_and_the_bits_stay(laptop):
    """EC2 recommends to leave a machine. The job never has fewer workers, and ends with the state of a calm one."""
    cloud = laptop.cloud
    first = laptop.up("-w", 1)["nodes"]
    nodes, old = private(first), next(node for node in first if node["name"] == "w0001")
    job = laptop.start("train", "train", "--cluster", "demo", *laptop.training, *ELASTIC)
    laptop.wait_for(lambda: laptop.members() == set(nodes.values()), f"both train; {laptop.said('train')}")
    laptop.machines.find(nodes["w0001"]).announce("events/recommendations/rebalance", noticeTime="2026-01-31T08:22:00Z")
    laptop.wait_for(lambda: "rebalance recommended at 2026-01-31T08:22:00Z" in trouble(cloud, "w0001"), "status shows the notice")
    end_watch = watch(laptop)
    laptop.wait_for(lambda: old["instance_id"] not in instances(cloud), f"the old one is ended; {laptop.said('watch')}")
    end_watch()
    now = private(cloud.json("status", "demo")["nodes"])
    assert set(now) == {"head", "w0001"} and now["w0001"] != nodes["w0001"]
    assert laptop.members() == set(now.values())
    assert log_of(now["w0001"])["ADDED"] < log_of(nodes["w0001"])["REMOVED"]
    told = texts(cloud)
    assert any("w0001 is to go: AWS may soon take it back" in text for text in told), told
    assert any("joins the job" in text for text in told) and any("trains instead of w0001" in text for text in told), told
    forecast = laptop.wait_for(lambda: forecast_of(cloud), "ten seconds are measured")
    assert forecast["samples_per_second"] > 0 and forecast["epochs"] == 100000 and forecast["dollars"] > 0
    last = max(laptop.epochs(), default=0)
    laptop.wait_for(lambda: max(laptop.epochs(), default=0) > last, "an epoch ends after that")
    cloud.run("stop", "--cluster", "demo")
    assert job.wait(120) == 75, laptop.said("train")
    epoch, alone = laptop.epochs()[-1], cloud.folder / "alone"
    cloud.run("train", *laptop.training, "--num-epochs", epoch, "--model-prefix", alone)
    states = {json.loads(laptop.weights(prefix, epoch))["state_sha256"] for prefix in (alone, lab.SHARED / "m/run")}
    assert len(states) == 1


@pytest.mark.slow
def test_a_worker_whose_agent_is_silent_is_replaced(laptop):
    """EC2's checks find nothing; its agent is gone for two minutes."""
    cloud = laptop.cloud
    first = laptop.up("-w", 2)["nodes"]
    old = next(node for node in first if node["name"] == "w0002")
    laptop.machines.find(old["private_ip"]).run("sh", "-c", "pkill -9 -f 'agent --nod[e]'; rm -rf /opt/dtrain/bundle")
    end_watch = watch(laptop)
    laptop.machines.wait_for(lambda: old["instance_id"] not in instances(cloud), f"it is replaced; {laptop.said('watch')}", 300)
    end_watch()
    assert set(private(cloud.json("status", "demo")["nodes"])) == {"head", "w0001", "w0002"}
    assert any("w0002 has been sick for 2:00: its agent is lost" in text for text in texts(cloud)), texts(cloud)


@pytest.mark.slow
def test_a_worker_of_up_that_was_lost_and_started_again_joins_the_job_that_runs(laptop):
    cloud = laptop.cloud
    first = laptop.up("-w", 1)["nodes"]
    nodes, old = private(first), next(node for node in first if node["name"] == "w0001")
    laptop.start("train", "train", "--cluster", "demo", *laptop.training, *ELASTIC)
    laptop.wait_for(lambda: laptop.members() == set(nodes.values()), f"both train; {laptop.said('train')}")
    cloud.ec2.terminate_instances(InstanceIds=[old["instance_id"]])
    end_watch = watch(laptop)
    laptop.wait_for(lambda: len(laptop.members()) == 2 and nodes["w0001"] not in laptop.members(),
                    f"a new one trains in its place; {laptop.said('watch')}\n{laptop.said('train')}")
    end_watch()
    cloud.run("stop", "--cluster", "demo", status=None)
