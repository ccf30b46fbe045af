"""`cluster watch --heal` where a pool refuses, and where machines end as soon as they run: what is tried again, and when."""

import signal
import time

import pytest
from faults import Answer, end_at_once, ended_by, error
from test_heal import HEAL, lose, names

TYPE, SUBNET = ("LaunchTemplateConfigs.1.Overrides.1." + name for name in ("InstanceType", "SubnetId"))
IN_THE_ANSWER = ("<CreateFleetResponse><errorSet><item><errorCode>VcpuLimitExceeded</errorCode><errorMessage>32 vCPUs</errorMessage>"
                 "</item></errorSet><fleetInstanceSet/></CreateFleetResponse>")
DISKS = "Client.VolumeLimitExceeded"


def texts(cloud):
    return [event["text"] for event in cloud.json("events", "demo")["events"]]


def watch_two_looks(cloud, action):
    """A watch looks each 25 s. The calls of this action that it makes in two looks, and what it says."""
    before = cloud.proxy.count(action)
    process = cloud.start("cluster", "watch", "demo", "--heal", "--no-head")
    deadline = time.monotonic() + 60
    while cloud.proxy.count(action) == before and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(32)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    return [call.form for call in cloud.proxy.calls if call.action == action][before:], said


@pytest.mark.parametrize("refusal", [error("VcpuLimitExceeded"), lambda exchange: Answer(200, IN_THE_ANSWER)])
def test_a_quota_that_is_used_up_leaves_the_next_type(cloud, refusal):
    cloud.cluster("up", "demo", "-w", 1, "--ami", cloud.image(), "--instance-type", "c5.large,m5.large", "--yes", "--no-wait")
    lose(cloud, "w0001")
    cloud.proxy.on("CreateFleet", lambda exchange: refusal(exchange) if exchange.form[TYPE] == "c5.large" else None)
    cloud.cluster(*HEAL)
    [worker] = [one for one in cloud.of_cluster("demo") if cloud.tags(one["InstanceId"])["dtrain:node"] == "w0001"]
    assert worker["InstanceType"] == "m5.large"
    assert "VcpuLimitExceeded; on-demand m5.large" in texts(cloud)[0]


def test_an_event_that_repeats_the_latest_is_not_written(cloud, up):
    up()
    lose(cloud, "w0001")
    cloud.proxy.on("CreateFleet", error("InvalidParameterValue"))
    for _ in range(2):
        assert "failed: ec2 CreateFleet: InvalidParameterValue" in cloud.cluster(*HEAL).stderr
    [event] = texts(cloud)
    assert "planted-request-id" not in event


def test_the_event_of_a_machine_that_ends_at_once_says_why(cloud, up):
    up()
    lose(cloud, "w0001")
    cloud.proxy.on("CreateFleet", end_at_once(cloud))
    cloud.proxy.on("DescribeInstances", ended_by(DISKS))
    cloud.cluster(*HEAL)
    [event] = texts(cloud)
    assert "none could be started: on-demand c5.large" in event and f"has ended: {DISKS}" in event


@pytest.mark.slow
def test_a_pool_that_refuses_rests(cloud, up):
    up()
    lose(cloud, "w0001")
    cloud.proxy.on("CreateFleet", error("InvalidParameterValue"))
    asked, _ = watch_two_looks(cloud, "CreateFleet")
    assert len({form[SUBNET] for form in asked}) == len(asked) > 0


@pytest.mark.slow
def test_a_pool_whose_machines_end_at_once_rests(cloud, up):
    up()
    lose(cloud, "w0001")
    cloud.proxy.on("CreateFleet", end_at_once(cloud))
    cloud.proxy.on("DescribeInstances", ended_by(DISKS))
    asked, _ = watch_two_looks(cloud, "CreateFleet")
    assert len({form[SUBNET] for form in asked}) == len(asked) > 0 and names(cloud) == ["head", "w0002"]


@pytest.mark.slow
def test_a_head_that_ends_at_once_is_not_started_at_each_look(cloud, up):
    up(count=1)
    lose(cloud, "head")
    cloud.proxy.on("RunInstances", end_at_once(cloud))
    cloud.proxy.on("DescribeInstances", ended_by(DISKS))
    asked, said = watch_two_looks(cloud, "RunInstances")
    assert len(asked) == 1 and f"has ended: {DISKS}" in said and "the next attempt to start one is in" in said
