"""`--capacity-reservation`: machines of its type are started in it, in its zone, and only if it has room for them. There are no
real reservations here: strictness.py plays them by EC2's documents."""

import json

import pytest

ONE, OTHER = "cr-0123456789abcdef0", "cr-0fedcba9876543210"
ZONE = "us-east-1c"


@pytest.fixture
def reserved(cloud):
    """reserve(id, ...): there is such a reservation; its description."""
    def reserve(identity=ONE, **words):
        cloud.proxy.strict.reservations[identity] = {"type": "c5.large", "zone": ZONE, "total": 4, "available": 4, **words}
        return cloud.proxy.strict.reservations[identity]
    return reserve


def zones(cloud):
    return {cloud.tags(one["InstanceId"])["dtrain:node"]: one["Placement"]["AvailabilityZone"] for one in cloud.of_cluster("demo")}


def test_head_and_workers_of_its_type_run_in_it(cloud, up, reserved):
    there = reserved()
    plan = cloud.json("plan", "demo", "-w", 2, "--instance-type", "c5.large", "--ami", cloud.image(), "--capacity-reservation", ONE)
    assert any(f"{ONE} (c5.large in {ZONE}) has 4 of 4 machines free" in note for note in plan["notes"])
    assert f"on-demand c5.large in {ZONE}, reservation {ONE}" in [one["what"] for one in plan["actions"] if one["step"] == "head"][0]
    assert cloud.proxy.mutating() == []
    up("--capacity-reservation", ONE)
    assert there["available"] == 1 and set(zones(cloud).values()) == {ZONE}
    assert "is up to date" in up().stdout and there["available"] == 1


def test_a_head_of_another_type_is_started_in_its_zone(cloud, up, reserved):
    there = reserved()
    up("--capacity-reservation", ONE, "--head-type", "m5.large")
    assert there["available"] == 2 and set(zones(cloud).values()) == {ZONE}
    run = next(call for call in cloud.proxy.calls if call.action == "RunInstances")
    assert not [field for field in run.form if field.startswith("CapacityReservation")]


def test_added_workers_use_that_of_the_cluster_or_their_own(cloud, up, reserved):
    there, other = reserved(), reserved(OTHER, available=2)
    up("--capacity-reservation", ONE)
    cloud.cluster("add", "demo", 1, "--yes", "--no-wait")
    assert (there["available"], other["available"]) == (0, 2)
    said = cloud.cluster("add", "demo", 2, "--yes", "--no-wait", "--capacity-reservation", OTHER).stderr
    assert f"{OTHER} (c5.large in {ZONE}) has 2 of 4 machines free" in said
    assert (there["available"], other["available"]) == (0, 0) and len(cloud.of_cluster("demo")) == 6
    tags = [cloud.tags(one["InstanceId"]) for one in cloud.of_cluster("demo")]
    assert all(one["dtrain:cluster"] == "demo" for one in tags)
    refused = cloud.cluster("add", "demo", 1, "--yes", "--no-wait", status=2).stderr
    assert "has 0 of 4 machines free, and 1 are to be started in it" in refused and len(cloud.of_cluster("demo")) == 6


def test_a_cluster_without_one_may_add_workers_in_one(cloud, up, reserved):
    up()
    there = reserved(zone=ZONE)
    cloud.cluster("add", "demo", 1, "--yes", "--no-wait", "--capacity-reservation", ONE)
    assert there["available"] == 3 and zones(cloud)["w0003"] == ZONE
    cloud.cluster("add", "demo", 1, "--yes", "--no-wait")
    assert there["available"] == 3 and len(cloud.of_cluster("demo")) == 5


def test_workers_that_are_added_after_the_head_has_moved_know_the_new_one(cloud, up, reserved):
    """EC2 remembers the token of the version that the first `add` made."""
    def node(name):
        return next(one for one in cloud.of_cluster("demo") if cloud.tags(one["InstanceId"])["dtrain:node"] == name)
    up()
    reserved()
    add = ("add", "demo", 1, "--yes", "--no-wait", "--capacity-reservation", ONE)
    cloud.cluster(*add)
    old = node("head")
    cloud.ec2.terminate_instances(InstanceIds=[old["InstanceId"]])
    cloud.stranger_at(old["PrivateIpAddress"])
    up()
    cloud.cluster(*add)
    new = node("head")["PrivateIpAddress"]
    script = cloud.user_data(node("w0004")["InstanceId"])
    assert new != old["PrivateIpAddress"] and (f"head={new}" in script or f"head='{new}'" in script)


def test_a_reservation_with_too_little_room_starts_nothing(cloud, up, reserved):
    reserved(available=2)
    refused = up("--capacity-reservation", ONE, status=2).stderr
    assert "has 2 of 4 machines free, and 3 are to be started in it" in refused and cloud.proxy.mutating() == []


def test_room_that_is_lost_after_the_plan_is_no_machine_on_demand(cloud, up, reserved):
    there = reserved()
    cloud.proxy.on("CreateFleet", lambda exchange: there.update(available=0), calls=[1])
    said = up("--capacity-reservation", ONE, status=4).stderr
    assert "ReservationCapacityExceeded" in said and cloud.of_cluster("demo") == []


@pytest.mark.parametrize(("words", "why"), [({"state": "expired"}, "is expired"), ({"platform": "Windows"}, "is for Windows"),
                                            ({"tenancy": "dedicated"}, "is for Linux/UNIX with tenancy dedicated"),
                                            ({"type": "m5.large"}, "is for m5.large, and the workers are c5.large"),
                                            ({"zone": "us-east-1z"}, "is in us-east-1z, where there is no subnet")])
def test_a_reservation_that_does_not_fit_is_refused(cloud, up, reserved, words, why):
    reserved(**words)
    refused = up("--capacity-reservation", ONE, status=2).stderr
    assert f"capacity reservation {ONE} {why}" in refused and cloud.proxy.mutating() == []


@pytest.mark.parametrize(("words", "why"), [((ONE,), f"has no capacity reservation {ONE}"), (("mine",), "'mine' is no id"),
                                            ((ONE, "--spot", "prefer"), "--capacity-reservation is for machines on demand")])
def test_a_reservation_that_is_none_is_refused(cloud, up, words, why):
    assert why in up("--capacity-reservation", *words, status=2).stderr and cloud.proxy.mutating() == []


def test_the_template_names_it(cloud, reserved):
    reserved()
    words = ("template", "demo", "-w", 1, "--instance-type", "c5.large", "--ami", cloud.image(), "--capacity-reservation", ONE)
    resources = json.loads(cloud.cluster(*words).stdout)["Resources"]
    for name in ("HeadTemplate", "WorkerTemplate"):
        assert resources[name]["Properties"]["LaunchTemplateData"]["CapacityReservationSpecification"] == {
            "CapacityReservationTarget": {"CapacityReservationId": ONE}}
