"""Jobs that a laptop gives to a cluster: `train --cluster demo --detach`, `jobs --cluster demo`, on machines that run their
user data. That AWS ends an instance that powers off is played by machines.py, not shown."""

import json
import os
import time

import pytest

if "DTRAIN_CLUSTER_LAB" not in os.environ:
    pytest.skip("machines need namespaces: tests/cluster/run.sh makes them", allow_module_level=True)

from machines import lab  # noqa: E402
from test_heal_inside import texts  # noqa: E402
from test_site import agents, laptop, private  # noqa: E402, F401  (a fixture is found by its name)

QUEUE = lab.SHARED / "dtrain-jobs/demo"


def give(cloud, training, *words, epochs, prefix="m/run", status=0):
    return cloud.run("train", "--cluster", "demo", "--detach", *training, "--num-epochs", epochs, "--model-prefix", prefix,
                     *words, status=status)


def jobs(cloud, *words, status=0):
    return cloud.run("jobs", *words, "--cluster", "demo", status=status)


def show(cloud, number):
    return json.loads(jobs(cloud, "show", number, "--json").stdout)


def state(number):
    return json.loads((QUEUE / f"{number:04}/state.json").read_text())


def wait_done(laptop, number):  # noqa: F811
    try:
        laptop.wait_for(lambda: show(laptop.cloud, number)["state"] == "done", f"job {number} is done")
    except AssertionError as error:
        raise AssertionError(f"{error}\n{show(laptop.cloud, number)}\n{jobs(laptop.cloud, 'logs', number)}") from None
    assert jobs(laptop.cloud, "wait", number).stdout == f"job {number}: done\n"


def saved():
    return len(list((lab.SHARED / "m").glob("run-*.json")))


def hash_of(cloud, prefix, epochs):
    return json.loads(cloud.run("inspect", "--json", f"{prefix}-{epochs:04d}.safetensors").stdout)["state_sha256"]


def expect_calm_bits(laptop, epochs):  # noqa: F811
    alone = laptop.cloud.folder / "alone"
    laptop.cloud.run("train", *laptop.training, "--num-epochs", epochs, "--model-prefix", alone)
    assert hash_of(laptop.cloud, lab.SHARED / "m/run", epochs) == hash_of(laptop.cloud, alone, epochs)


def kill_runner_and_job(machine):
    machine.run("sh", "-c", "pkill -9 -f 'agent --job[s]'; pkill -9 -f 'dtrain trai[n]'", check=False)


def test_a_job_is_given_away_and_goes_on_after_all_machines_were_off(laptop):  # noqa: F811
    """The laptop gives a job and does nothing more. Runner and job are killed; then both machines lose their power at once.
    The job ends with the bits of a calm run on one machine."""
    cloud, epochs = laptop.cloud, 120
    nodes = private(laptop.up("-w", 1)["nodes"])
    machines = [laptop.machines.find(address) for address in nodes.values()]
    refused = give(cloud, [*laptop.training[:-4], "--data-train", lab.SHARED / "none.rec"], epochs=1, status=1)
    assert "none.rec" in refused.stderr
    given = give(cloud, laptop.training, epochs=epochs)
    assert "job 1 is in the queue" in given.stdout, given
    laptop.wait_for(lambda: saved() >= 1, f"it trains; {jobs(cloud, 'logs', 1).stdout}")
    seen = show(cloud, 1)
    assert (seen["state"], seen["attempts"], seen["job_dir"]) == ("running", 1, str(QUEUE / "0001")), seen
    members = (QUEUE / "0001/host_worker_log").read_text()
    assert all(address in members for address in nodes.values()), members

    kill_runner_and_job(laptop.machines.find(nodes["head"]))
    before = saved()
    laptop.wait_for(lambda: show(cloud, 1)["attempts"] == 2 and saved() > before, "it was resumed")

    assert show(cloud, 1)["state"] == "running"
    laptop.machines.cut_power(machines)
    # No command of the laptop, which would also introduce the machines to the head.
    laptop.wait_for(lambda: json.loads((QUEUE / "0001/state.json").read_text())["state"] == "done", "the job is done")
    wait_done(laptop, 1)
    assert show(cloud, 1)["attempts"] == 3, jobs(cloud, "logs", 1).stdout
    assert "Resuming from" in jobs(cloud, "logs", 1).stdout
    expect_calm_bits(laptop, epochs)


@pytest.mark.slow
def test_priorities_cancel_and_a_page_of_the_queue(laptop):  # noqa: F811
    """Also on the head itself, without --cluster."""
    cloud = laptop.cloud
    nodes = private(laptop.up("-w", 1)["nodes"])
    give(cloud, laptop.training, epochs=100000)
    laptop.wait_for(lambda: saved() >= 1, "the first trains")
    for name, priority in (("late", 1), ("soon", 2)):
        cloud.run("launch", "--cluster", "demo", "--detach", "--priority", priority, "-n", 2, "--", "sh", "-c",
                  f"echo {name}.$RANK >>{lab.SHARED}/order")
    cloud.run("launch", "--cluster", "demo", "--detach", "-n", 9, "--", "true")
    answer = jobs(cloud, "cancel", 1)
    assert answer.stdout == "job 1: cancelled with a checkpoint\n", answer
    assert "is over: cancelled" in jobs(cloud, "cancel", 1, status=2).stderr
    jobs(cloud, "wait", 2)
    order = (lab.SHARED / "order").read_text().split()
    assert [word.split(".")[0] for word in order] == ["soon", "soon", "late", "late"], order
    laptop.wait_for(lambda: "waits until 9 machines" in show(cloud, 4)["why"], "the last one lacks machines")
    head = laptop.machines.find(nodes["head"])
    own = head.run("/opt/dtrain/bundle/dtrain", "jobs", "list", "--json")
    listed = json.loads(own.stdout)
    assert [job["state"] for job in listed["jobs"]] == ["cancelled", "done", "done", "waiting"] and listed["runner"]
    jobs(cloud, "cancel", 4)
    assert "no job 77" in jobs(cloud, "show", 77, status=2).stderr


@pytest.mark.slow
def test_a_new_head_finds_the_queue(laptop):  # noqa: F811
    """AWS takes the head away for good; `cluster watch --heal` starts another one at its address, which finds dtrain in the shared
    folder and resumes the job with the worker."""
    cloud, epochs = laptop.cloud, 120
    nodes = private(laptop.up("-w", 1)["nodes"])
    give(cloud, laptop.training, epochs=epochs)
    laptop.wait_for(lambda: saved() >= 1, "it trains")
    lost = next(one["InstanceId"] for one in cloud.instances() if one["PrivateIpAddress"] == nodes["head"])
    cloud.ec2.terminate_instances(InstanceIds=[lost])
    laptop.wait_for(lambda: not laptop.machines.find(lost), "the head is gone")
    before = saved()
    cloud.cluster("watch", "demo", "--heal", "--no-head", "--once")
    assert private(cloud.json("status", "demo", "--no-head")["nodes"]) == nodes
    laptop.wait_for(lambda: set(agents(cloud.json("status", "demo")).values()) == {"registered"}, "the new head has dtrain")
    laptop.wait_for(lambda: saved() > before, "the job goes on")
    wait_done(laptop, 1)
    expect_calm_bits(laptop, epochs)


@pytest.mark.slow
def test_a_job_of_the_queue_is_saved_by_cluster_stop_and_goes_on_after_the_start(laptop):  # noqa: F811
    cloud, epochs = laptop.cloud, 120
    laptop.up("-w", 1)
    give(cloud, laptop.training, epochs=epochs)
    laptop.wait_for(lambda: saved() >= 1, "it trains")
    give(cloud, laptop.training, "--priority", 9, epochs=1, prefix="m/next")  # it would start as soon as the first stops
    said = cloud.cluster("stop", "demo", "--yes").stderr
    assert "the job was stopped with a checkpoint" in said, said
    assert state(1)["state"] in ("waiting", "running") and state(1)["attempts"] == 1, state(1)
    assert not (QUEUE / "0002/state.json").exists() or state(2)["attempts"] == 0, state(2)
    cloud.cluster("start", "demo", "--yes", "--timeout", 120)
    wait_done(laptop, 2)
    wait_done(laptop, 1)
    expect_calm_bits(laptop, epochs)


@pytest.mark.slow
def test_the_keeper_on_the_head_knows_the_job_of_the_queue(laptop):  # noqa: F811
    """A worker that EC2 may take back leaves the job once its successor trains, and a budget that is spent saves the job first."""
    cloud, machines = laptop.cloud, laptop.machines
    machines.reach(cloud.proxy.url)
    nodes = private(laptop.up("-w", 1, "--heal", "--budget", 50)["nodes"])
    give(cloud, laptop.training, "--elastic", "--elastic-boundary", "step", epochs=100000)
    laptop.wait_for(lambda: saved() >= 1, "it trains")
    machines.find(nodes["w0001"]).announce("events/recommendations/rebalance", noticeTime="2026-01-31T08:22:00Z")
    laptop.wait_for(lambda: any("trains instead of w0001" in text for text in texts(cloud)), "the new worker trains first")
    assert state(1)["state"] == "running" and state(1)["attempts"] == 1
    group = cloud.ec2.describe_security_groups(Filters=[{"Name": "tag:dtrain:cluster", "Values": ["demo"]}])["SecurityGroups"][0]
    spent = {"schema": "dtrain.cluster-spent/1", "dollars": 60, "at": int(time.time()), "warned": True, "unpriced": []}
    cloud.ec2.create_tags(Resources=[group["GroupId"]], Tags=[{"Key": "dtrain:spent", "Value": json.dumps(spent)}])
    laptop.wait_for(lambda: cloud.node_names("demo") == ["head"], "the workers are ended")
    laptop.wait_for(lambda: any("the job was stopped with a checkpoint; ended" in text for text in texts(cloud)), "the job was saved")
    time.sleep(6)  # the queue would begin again after three seconds
    assert (state(1)["state"], state(1)["attempts"]) == ("waiting", 1), state(1)
    assert "of the budget of $50.00 are spent" in state(1)["why"], state(1)


@pytest.mark.slow
def test_a_node_that_is_away_when_the_machines_are_to_end_is_ended_once_it_is_back(laptop):  # noqa: F811
    cloud = laptop.cloud
    nodes = private(laptop.up("-w", 1)["nodes"])
    head, worker = (laptop.machines.find(nodes[name]) for name in ("head", "w0001"))
    worker.run("sh", "-c", "pkill -9 -f 'agent --nod[e]'")  # it is started again two seconds later
    head.run("sh", "-c", "echo '{\"ask\": \"down\"}' | /opt/dtrain/bundle/dtrain agent --ask")
    laptop.wait_for(lambda: cloud.of_cluster("demo") == [], f"all machines have ended; {head.log()}")


@pytest.mark.slow
def test_the_cluster_goes_down_when_its_jobs_are_done(laptop):  # noqa: F811
    """A minute after the last job all machines power off, without rights in the account. Until then it takes jobs, and after
    that none. A watch that would start the machines again is named."""
    cloud = laptop.cloud
    laptop.up("-w", 1)
    group = cloud.ec2.describe_security_groups(Filters=[{"Name": "tag:dtrain:cluster", "Values": ["demo"]}])["SecurityGroups"][0]
    cloud.ec2.create_tags(Resources=[group["GroupId"]], Tags=[{"Key": "dtrain:healer", "Value": f"office.1 {int(time.time())}"}])
    refused = give(cloud, laptop.training, "--down-when-done", epochs=1, status=2)
    assert "office.1" in refused.stderr, refused
    cloud.ec2.create_tags(Resources=[group["GroupId"]], Tags=[{"Key": "dtrain:healer", "Value": "- 0"}])
    give(cloud, laptop.training, "--down-when-done", epochs=1)
    jobs(cloud, "wait", 1)
    give(cloud, laptop.training, epochs=1, prefix="m/second")
    jobs(cloud, "wait", 2)
    assert len(cloud.of_cluster("demo")) == 2
    laptop.wait_for(lambda: (QUEUE / "closed").exists(), "the queue is closed")
    late = give(cloud, laptop.training, epochs=1, prefix="m/third", status=None)
    assert late.returncode in (2, 4), late
    laptop.wait_for(lambda: cloud.of_cluster("demo") == [], "the machines have ended")
    cloud.cluster("down", "demo", "--yes")
    assert cloud.sweep("demo") == []
    assert "going down" in late.stderr or late.returncode == 4, late
