"""`cluster stop` and `start`: machines keep disks and private addresses, what cannot stop is named, and nothing is started
instead of what is stopped."""

import json
import pathlib
import signal
import time

import pytest
from cloud import UP
from faults import error
from test_heal import HEAL, group, instance, lose, set_tag

STOP, START = ("stop", "demo", "--yes", "--no-head"), ("start", "demo", "--yes", "--no-wait")


def states(cloud):
    return {cloud.tags(one["InstanceId"])["dtrain:node"]: one["State"]["Name"] for one in cloud.of_cluster("demo")}


def all_are(state):
    return {"head": state, "w0001": state, "w0002": state}


def addresses(cloud, kind):
    return {node["name"]: node[kind] for node in cloud.json("status", "demo")["nodes"]}


def stopped_tag(cloud):
    return next((tag["Value"] for tag in group(cloud)["Tags"] if tag["Key"] == "dtrain:stopped"), "")


def test_a_cluster_stops_and_starts_under_its_private_addresses(cloud, up):
    up()
    private, public = addresses(cloud, "private_ip"), addresses(cloud, "public_ip")
    stopped = cloud.json(*STOP)
    assert stopped["changed"] == ["head", "w0001", "w0002"] and stopped["unmoved"] == [] and states(cloud) == all_are("stopped")
    assert "is stopped already" in cloud.cluster(*STOP).stdout and stopped_tag(cloud)
    started = cloud.json(*START)
    assert started["changed"] == ["head", "w0001", "w0002"] and states(cloud) == all_are("running")
    assert addresses(cloud, "private_ip") == private and not stopped_tag(cloud)
    now = addresses(cloud, "public_ip")
    assert all(now.values()) and not set(now.values()) & set(public.values())
    assert "cluster demo runs already" in cloud.cluster(*START).stdout
    assert "is up to date" in up().stdout and len(cloud.of_cluster("demo")) == 3


def test_what_a_stopped_cluster_costs_is_said(cloud, up):
    up("--root-gb", 20)
    running = cloud.json("status", "demo")
    assert running["stopped"] is None and running["dollars_per_hour"] == pytest.approx(3 * 0.085)
    cloud.cluster(*STOP)
    disks = cloud.json("status", "demo")["stopped"]
    assert disks["machines"] == 3 and disks["disk_gb"] >= 3 * 8
    told = cloud.json("list")["clusters"][0]
    assert (told["state"], told["dollars_per_hour"], told["stopped"]) == ("stopped", 0, disks)
    shown = cloud.cluster("status", "demo").stdout + cloud.cluster("cost", "demo").stdout + cloud.cluster("list").stdout
    assert "no machine runs" in shown and f"({disks['disk_gb']} GB) cost" in shown and "$0.00" not in shown
    assert cloud.json("cost", "demo")["stopped"] == disks


def volumes(cloud, kind):
    """As if the disks of the cluster were of that kind."""
    def answer(exchange):
        found = exchange.proxy.strict.answer(exchange)
        found.body = found.body.replace(b"<volumeType>gp2<", f"<volumeType>{kind}<".encode())
        return found
    return answer


def test_disks_have_the_price_of_their_kind_or_none(cloud, up):
    up()
    cloud.cluster(*STOP)
    cloud.proxy.on("DescribeVolumes", volumes(cloud, "gp3"))
    disks = cloud.json("status", "demo")["stopped"]
    assert disks["dollars_per_month"] == pytest.approx(0.08 * disks["disk_gb"])
    assert f"${0.08 * disks['disk_gb']:.2f} a month" in cloud.cluster("list").stdout
    cloud.proxy.plans.clear()
    cloud.proxy.on("DescribeVolumes", volumes(cloud, "io2"))
    assert cloud.json("status", "demo")["stopped"]["dollars_per_month"] is None
    said = cloud.cluster("status", "demo").stdout
    assert "at a price that is unknown here" in said and "$0.00" not in said
    assert "disks, an unknown price" in cloud.cluster("list").stdout


def test_a_refused_stop_leaves_no_mark(cloud, up):
    """A reconciler would keep nothing of a cluster that is marked as stopped."""
    up()
    cloud.proxy.on("StopInstances", error("UnauthorizedOperation", "no right to stop", 403))
    assert "no right to stop" in cloud.cluster(*STOP, status=4).stderr
    assert states(cloud) == all_are("running") and stopped_tag(cloud) == ""
    cloud.proxy.plans.clear()
    cloud.cluster(*STOP)
    cloud.ec2.start_instances(InstanceIds=[instance(cloud, "w0001")])
    cloud.proxy.on("StopInstances", error("UnauthorizedOperation", "no right to stop", 403))
    cloud.cluster(*STOP, status=4)
    assert stopped_tag(cloud), "the mark of an earlier stop stays"


def test_an_up_that_starts_the_head_of_a_stopped_cluster_takes_the_mark_away(cloud, up):
    up()
    cloud.cluster(*STOP)
    up(status=None)
    assert states(cloud) == all_are("stopped") and stopped_tag(cloud), "the head is its owner's to start"
    lose(cloud, "head")
    up(status=None)
    assert states(cloud)["head"] == "running" and stopped_tag(cloud) == ""


def test_spot_machines_go_on_and_are_named(cloud):
    cloud.cluster("up", "demo", "-w", 2, "--ami", cloud.image(), "--spot", "prefer", *UP)
    asked = cloud.cluster("stop", "demo", "--no-head", status=2).stderr
    assert "w0001" in asked and "cannot be stopped and cost $" in asked and states(cloud) == all_are("running")
    left = cloud.cluster(*STOP, status=3)
    assert states(cloud) == {"head": "stopped", "w0001": "running", "w0002": "running"}
    assert "EC2 does not stop spot instances" in left.stderr and "dtrain cluster remove demo w0001 --force" in left.stderr
    assert "partly stopped" in left.stdout and cloud.proxy.count("StopInstances") == 1
    assert [one["node"] for one in cloud.json(*STOP, status=3)["unmoved"]] == ["w0001", "w0002"]
    cloud.cluster("remove", "demo", "w0001", "--force", "--yes")
    cloud.cluster(*START)
    assert states(cloud) == {"head": "running", "w0002": "running"}


def test_a_protected_machine_goes_on_and_is_named(cloud, up):
    up()
    kept = instance(cloud, "w0001")
    cloud.ec2.modify_instance_attribute(InstanceId=kept, DisableApiStop={"Value": True})
    left = cloud.cluster(*STOP, status=3)
    assert states(cloud) == {**all_are("stopped"), "w0001": "running"}
    assert f"--no-disable-api-stop --region us-east-1 --instance-id {kept}" in left.stderr
    cloud.ec2.modify_instance_attribute(InstanceId=kept, DisableApiStop={"Value": False})
    cloud.cluster(*STOP)
    assert states(cloud) == all_are("stopped")


def test_a_reconciler_starts_nothing_that_its_owner_stopped(cloud, up):
    """A worker that is lost while the cluster is stopped, and a head: both come back once the cluster has started."""
    up()
    cloud.cluster(*STOP)
    lose(cloud, "w0002")
    said = cloud.cluster(*HEAL).stderr
    assert "the cluster is stopped, and only its owner starts it again" in said
    assert states(cloud) == {"head": "stopped", "w0001": "stopped"}
    lose(cloud, "head")
    cloud.cluster(*HEAL)
    assert states(cloud) == {"w0001": "stopped"} and cloud.proxy.count("RunInstances") == 1
    assert "dtrain cluster up demo completes it" in cloud.cluster(*START, status=2).stderr


def test_a_reconciler_does_nothing_while_machines_still_stop(cloud, up):
    """The mark is there before the first machine stops."""
    up()
    marks = []
    cloud.proxy.before_call = lambda exchange: marks.append(stopped_tag(cloud)) if exchange.action == "StopInstances" else None
    cloud.cluster(*STOP)
    assert marks and all(marks)


@pytest.mark.parametrize(("verb", "there", "action"), [(STOP, "stopped", "StopInstances"), (START[:3], "running", "StartInstances")])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_ctrl_c_leaves_nothing_that_the_same_command_does_not_finish(cloud, up, verb, there, action, moment):
    up()
    if verb != STOP:
        cloud.cluster(*STOP)
    cloud.proxy.strict.polls = 4

    def stop(exchange):
        if exchange.action == action:
            process.send_signal(signal.SIGINT)
            cloud.proxy.before_call = cloud.proxy.after_call = None
            time.sleep(0.5)
    setattr(cloud.proxy, f"{moment}_call", stop)
    process = cloud.start("cluster", *verb)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == -signal.SIGINT and "run the same command again to continue" in said, said
    cloud.cluster(*(STOP if verb == STOP else START))
    cloud.proxy.strict.polls = 0
    assert states(cloud) == all_are(there) and bool(stopped_tag(cloud)) == (verb == STOP)


def test_machines_between_two_states_are_waited_for(cloud, up):
    """A stop of machines that still start, a start of machines that still stop."""
    cloud.proxy.strict.polls = 3
    up()
    cloud.cluster(*STOP)
    assert states(cloud) == all_are("stopped")
    cloud.proxy.strict.seen.clear()
    cloud.cluster("start", "demo", "--yes", "--timeout", 60, "--no-wait", status=3)
    cloud.proxy.strict.polls = 0
    cloud.cluster(*START)
    assert states(cloud) == all_are("running")


def test_a_half_stopped_cluster_goes_either_way(cloud, up):
    up()
    cloud.ec2.stop_instances(InstanceIds=[instance(cloud, "w0001")])
    assert cloud.json("list")["clusters"][0]["state"] == "partly stopped"
    assert cloud.json(*STOP)["changed"] == ["head", "w0002"]
    cloud.ec2.start_instances(InstanceIds=[instance(cloud, "head")])
    assert cloud.json(*START)["changed"] == ["w0001", "w0002"] and states(cloud) == all_are("running")


def test_no_capacity_for_a_worker_is_said_and_for_the_head_starts_nothing(cloud, up):
    up()
    cloud.cluster(*STOP)
    refused = error("InsufficientInstanceCapacity", "no c5.large", 500)
    worker = instance(cloud, "w0002")
    cloud.proxy.on("StartInstances", lambda exchange: refused(exchange) if worker in exchange.form.values() else None)
    left = cloud.cluster(*START, status=3)
    assert states(cloud) == {**all_are("running"), "w0002": "stopped"}
    assert f"w0002 ({worker}) is stopped" in left.stderr and "run the same command again later" in left.stderr
    cloud.cluster(*STOP)
    cloud.proxy.on("StartInstances", refused)
    said = cloud.cluster(*START, status=4).stderr
    assert "the head of cluster demo" in said and "nothing was started" in said
    assert states(cloud) == all_are("stopped") and stopped_tag(cloud)


def test_commands_that_need_the_head_say_that_it_is_stopped(cloud, up):
    up()
    cloud.cluster(*STOP)
    for words in (("ssh", "demo"), ("env", "demo"), ("add", "demo", 1, "--yes")):
        said = cloud.cluster(*words, status=None)
        assert said.returncode in (2, 4) and "the head of cluster demo is stopped" in said.stderr, said.stderr
        assert "dtrain cluster start demo" in said.stderr
    health = cloud.cluster("health", "demo", "--no-head", "--replace", "--yes", status=20)
    assert "next: dtrain cluster start demo" in health.stdout and len(cloud.of_cluster("demo")) == 3


def test_names_for_ssh_follow_the_addresses(cloud, up):
    up()
    cloud.cluster("ssh", "demo", "--write-config")
    folder = pathlib.Path(cloud.environment["HOME"]) / ".dtrain/clusters/demo"
    old = addresses(cloud, "public_ip")["w0001"]
    cloud.cluster(*STOP)
    assert old not in (folder / "ssh_config").read_text()
    cloud.cluster(*START)
    assert f"HostName {addresses(cloud, 'public_ip')['w0001']}\n" in (folder / "ssh_config").read_text()


def test_a_spent_budget_starts_nothing(cloud, up):
    up("--budget", 50)
    cloud.cluster(*STOP)
    set_tag(cloud, "dtrain:spent", json.dumps({"schema": "dtrain.cluster-spent/1", "dollars": 60.0, "at": int(time.time()),
                                               "warned": True, "unpriced": []}))
    assert "are spent" in cloud.cluster(*START, status=2).stderr and states(cloud) == all_are("stopped")


def test_local_disks_are_named_before_they_are_lost(cloud):
    cloud.cluster("up", "demo", "-w", 1, "--ami", cloud.image(), "--instance-type", "g5.xlarge", "--yes", "--no-wait")
    asked = cloud.cluster("stop", "demo", "--no-head", status=2).stderr
    assert "what is on the local disks of g5.xlarge is lost" in asked and "--yes" in asked
    assert cloud.proxy.count("StopInstances") == 0


@pytest.mark.parametrize("verb", ["stop", "start"])
def test_what_is_no_cluster_is_refused(cloud, verb):
    assert "there is no cluster demo" in cloud.cluster(verb, "demo", "--yes", status=2).stderr
    assert "is no name for a cluster" in cloud.cluster(verb, "a b", "--yes", status=2).stderr


def test_down_ends_a_stopped_cluster(cloud, up):
    up()
    cloud.cluster(*STOP)
    cloud.cluster("down", "demo", "--yes")
    assert cloud.of_cluster("demo") == [] and cloud.sweep("demo") == []
