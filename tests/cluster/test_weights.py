"""`--instance-type T:2`: machines that count as several workers, for `up`, `add`, the wish and the reconciler."""

import pytest
from faults import error
from test_heal import HEAL, instance, lose, names, wish

TYPES = "c5.large,c5.xlarge:2"


def types(cloud):
    return {cloud.tags(one["InstanceId"])["dtrain:node"]: one["InstanceType"] for one in cloud.of_cluster("demo")}


def no_machines_of(cloud, kind):
    """The pools of one type are empty."""
    def dry(exchange):
        wanted = exchange.form["LaunchTemplateConfigs.1.Overrides.1.InstanceType"]
        return error("InsufficientInstanceCapacity", status=500)(exchange) if wanted == kind else None
    cloud.proxy.on("CreateFleet", dry)


def up(cloud, count=4, **how):
    return cloud.cluster("up", "demo", "-w", count, "--ami", cloud.image(), "--instance-type", TYPES, "--yes", "--no-wait", **how)


def test_four_workers_are_two_machines_that_count_double(cloud):
    no_machines_of(cloud, "c5.large")
    up(cloud)
    assert types(cloud) == {"head": "c5.large", "w0001": "c5.xlarge", "w0002": "c5.xlarge"}
    assert cloud.tags(instance(cloud, "w0002"))["dtrain:weight"] == "2" and wish(cloud)["base"] == 4
    assert "is up to date" in up(cloud).stdout
    assert "c5.xlarge:2" in cloud.cluster("status", "demo").stdout
    told = cloud.json("events", "demo")
    assert (told["workers"], told["wanted_workers"]) == (4, {"base": 4, "added": 0})
    up(cloud, 5)  # one more is another double one, as there are no others
    assert names(cloud) == ["head", "w0001", "w0002", "w0003"]


def test_what_is_lost_is_refilled_by_what_it_counted_for(cloud):
    no_machines_of(cloud, "c5.large")
    up(cloud)
    lose(cloud, "w0002")
    assert "2 of 4 workers are there" in cloud.cluster(*HEAL).stderr
    assert types(cloud)["w0002"] == "c5.xlarge" and len(names(cloud)) == 3
    lose(cloud, "w0001")
    cloud.proxy.plans.clear()
    cloud.cluster(*HEAL)
    assert types(cloud) == {"head": "c5.large", "w0001": "c5.large", "w0002": "c5.xlarge", "w0003": "c5.large"}
    calls = cloud.proxy.count("CreateFleet")
    cloud.cluster(*HEAL)
    assert cloud.proxy.count("CreateFleet") == calls and "is up to date" in up(cloud).stdout


def test_added_and_removed_ones_count_so_too(cloud):
    no_machines_of(cloud, "c5.large")
    up(cloud, 2)
    added = cloud.json("add", "demo", 4, "--yes", "--no-wait")
    assert (added["wanted"], added["got"], len(added["nodes"])) == (4, 4, 2) and wish(cloud)["elastic"] == 4
    cloud.cluster("remove", "demo", added["nodes"][0]["name"], "--yes", "--force")
    assert wish(cloud)["elastic"] == 2
    calls = cloud.proxy.count("CreateFleet")
    cloud.cluster(*HEAL)
    assert cloud.proxy.count("CreateFleet") == calls


def test_fewer_than_the_minimum_is_counted_in_workers(cloud):
    no_machines_of(cloud, "c5.large")
    short = cloud.cluster("up", "demo", "-w", 4, "--min-workers", 3, "--ami", cloud.image(), "--instance-type", TYPES, "--yes", "--no-wait")
    assert short.returncode == 0 and len(names(cloud)) == 3


@pytest.mark.parametrize("text", ["c5.large:0", "c5.large:two", "c5.large:101", "c5.large:"])
def test_a_weight_is_a_number_of_workers(cloud, text):
    said = cloud.cluster("up", "demo", "-w", 1, "--instance-type", text, "--yes", status=2).stderr
    assert "is no weight" in said and "a number from 1 to 100" in said and cloud.proxy.calls == []


def test_who_cannot_count_so_refuses_it(cloud):
    assert "takes no weights" in cloud.cluster("template", "demo", "--instance-type", "c5.large:2", status=2).stderr
