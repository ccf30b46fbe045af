"""`cluster watch --heal`: a cluster stays as it is wanted, one reconciler acts, and `cluster events` says why."""

import json
import signal
import time

import pytest
from faults import Answer, delay, error

HEAL = ("watch", "demo", "--heal", "--no-head", "--once")


def names(cloud):
    return cloud.node_names("demo")


def instance(cloud, name):
    return next(one["InstanceId"] for one in cloud.of_cluster("demo") if cloud.tags(one["InstanceId"])["dtrain:node"] == name)


def lose(cloud, *nodes):
    """AWS takes the machines away."""
    cloud.ec2.terminate_instances(InstanceIds=[instance(cloud, name) for name in nodes])


def group(cloud):
    return cloud.ec2.describe_security_groups(Filters=[{"Name": "tag:dtrain:cluster", "Values": ["demo"]}])["SecurityGroups"][0]


def wish(cloud):
    return json.loads(next(tag["Value"] for tag in group(cloud)["Tags"] if tag["Key"] == "dtrain:wish"))


def set_tag(cloud, key, value):
    cloud.ec2.create_tags(Resources=[group(cloud)["GroupId"]], Tags=[{"Key": key, "Value": value}])


def test_base_workers_beyond_an_up_with_fewer_are_named_and_may_go(cloud, up):
    up()
    note = "w0002 is more than the 1 worker wanted"
    assert any(note in one for one in cloud.json("plan", "demo", "-w", 1)["notes"])
    assert "--force" in cloud.cluster("remove", "demo", "w0002", "--yes", status=2).stderr
    assert note in up(count=1).stderr
    assert "--force" in cloud.cluster("remove", "demo", "w0001", "--yes", status=2).stderr
    cloud.cluster("remove", "demo", "w0002", "--yes", "--no-wait")
    assert names(cloud) == ["head", "w0001"] and wish(cloud)["base"] == 1
    assert note not in up(count=1).stderr and names(cloud) == ["head", "w0001"]


def test_nothing_is_done_for_a_cluster_that_is_as_wanted(cloud, up):
    up()
    assert wish(cloud) == {"schema": "dtrain.cluster-wish/1", "base": 2, "elastic": 0}
    cloud.proxy.calls.clear()
    cloud.cluster(*HEAL)
    assert set(cloud.proxy.mutating()) == {"CreateTags"} and names(cloud) == ["head", "w0001", "w0002"]
    told = cloud.json("events", "demo")
    assert told["events"] == [] and told["keeper"] is None and told["wanted_workers"] == {"base": 2, "added": 0}
    assert "nothing was done" in cloud.cluster("events", "demo").stdout


def test_lost_workers_are_started_again_under_their_names(cloud, up):
    up()
    cloud.cluster("add", "demo", 1, "--yes", "--no-wait")
    assert wish(cloud)["elastic"] == 1
    lose(cloud, "w0002", "w0003")
    said = cloud.cluster(*HEAL).stderr
    assert names(cloud) == ["head", "w0001", "w0002", "w0004"]
    assert "1 of 2 workers are there" in said and "started w0002" in said
    assert cloud.tags(instance(cloud, "w0002"))["dtrain:base"] == "yes"
    assert cloud.tags(instance(cloud, "w0004"))["elastic_worker_status"] == "ADD_QUEUED"
    events = cloud.json("events", "demo")["events"]
    assert len(events) == 2 and "on-demand c5.large in us-east-1" in events[0]["text"]
    assert "is up to date" in up().stdout
    before = cloud.proxy.count("CreateFleet")
    cloud.cluster(*HEAL)
    assert cloud.proxy.count("CreateFleet") == before


def test_all_machines_lost_and_the_head_too(cloud, up):
    up("--tag", "project=birds")
    lose(cloud, "head", "w0001", "w0002")
    said = cloud.cluster(*HEAL).stderr
    assert "the head is gone" in said and names(cloud) == ["head", "w0001", "w0002"]
    assert cloud.tags(instance(cloud, "w0001"))["project"] == "birds"


def test_a_head_that_is_started_again_elsewhere_keeps_the_user_s_key_and_door(cloud, up, key):
    """A watch on another machine has no key of the user, and another address."""
    up("--ssh-from", "203.0.113.0/24")
    pair = next(one for one in cloud.of_cluster("demo"))["KeyName"]
    lose(cloud, "head")
    for file in (cloud.folder / "home/.ssh").iterdir():
        file.unlink()
    cloud.cluster(*HEAL)
    head = next(one for one in cloud.of_cluster("demo") if cloud.tags(one["InstanceId"])["dtrain:node"] == "head")
    assert head["KeyName"] == pair
    sources = [block["CidrIp"] for rule in group(cloud)["IpPermissions"] for block in rule["IpRanges"]]
    assert sources == ["203.0.113.0/24"]


def test_a_head_keeps_its_address_where_pools_of_other_zones_come_first(cloud, up):
    cloud.proxy.on("RunInstances", error("InsufficientInstanceCapacity", status=500), calls=[1])
    up()
    lost = next(one for one in cloud.of_cluster("demo") if one["InstanceId"] == instance(cloud, "head"))
    lose(cloud, "head")

    def in_its_subnet(exchange):
        subnet, address = (exchange.form.get(name) or exchange.form.get(f"NetworkInterface.1.{name}")
                           for name in ("SubnetId", "PrivateIpAddress"))
        elsewhere = address and subnet != lost["SubnetId"]
        return error("InvalidParameterValue", "Address does not fall within the subnet's range")(exchange) if elsewhere else None
    cloud.proxy.on("RunInstances", in_its_subnet)
    cloud.cluster(*HEAL)
    head = next(one for one in cloud.of_cluster("demo") if one["InstanceId"] == instance(cloud, "head"))
    assert (head["SubnetId"], head["PrivateIpAddress"]) == (lost["SubnetId"], lost["PrivateIpAddress"])


def test_another_type_then_another_market_then_another_zone(cloud):
    cloud.cluster("up", "demo", "-w", 1, "--ami", cloud.image(), "--instance-type", "c5.large,m5.large", "--spot",
                  "prefer", "--yes", "--no-wait")
    lose(cloud, "w0001")
    asked = []

    def dry(exchange):
        lead = "LaunchTemplateConfigs.1.Overrides.1."
        asked.append((exchange.form[lead + "InstanceType"], exchange.form["TargetCapacitySpecification.DefaultTargetCapacityType"],
                      exchange.form[lead + "SubnetId"]))
        return error("InsufficientInstanceCapacity", status=500)(exchange) if len(asked) < 4 else None
    cloud.proxy.on("CreateFleet", dry)
    cloud.cluster(*HEAL)
    # The pool that has just lost its spot machine rests.
    assert [one[:2] for one in asked[:3]] == [("m5.large", "spot"), ("c5.large", "on-demand"), ("m5.large", "on-demand")]
    assert len({one[2] for one in asked[:3]}) == 1
    assert asked[3][:2] == ("c5.large", "spot") and asked[3][2] != asked[0][2]
    assert names(cloud) == ["head", "w0001"]
    assert "InsufficientInstanceCapacity" in cloud.json("events", "demo")["events"][0]["text"]


def test_no_capacity_anywhere_is_said_and_tried_again_later(cloud, up):
    up()
    lose(cloud, "w0001")
    cloud.proxy.on("CreateFleet", error("InsufficientInstanceCapacity", status=500))
    assert "none could be started" in cloud.cluster(*HEAL).stderr
    cloud.proxy.plans.clear()
    cloud.cluster(*HEAL)
    assert names(cloud) == ["head", "w0001", "w0002"]


def test_who_is_removed_stays_away(cloud, up):
    up()
    cloud.cluster("add", "demo", 2, "--yes", "--no-wait")
    cloud.cluster("remove", "demo", "w0003", "--yes", "--force")
    cloud.cluster("remove", "demo", "w0001", "--yes", "--force")
    assert (wish(cloud)["base"], wish(cloud)["elastic"]) == (1, 1)
    cloud.cluster(*HEAL)
    assert names(cloud) == ["head", "w0002", "w0004"]
    up()
    assert wish(cloud)["base"] == 2 and names(cloud) == ["head", "w0001", "w0002", "w0004"]


@pytest.mark.parametrize("by", [("remove", "demo", "w0003", "--yes", "--force"), HEAL])
def test_who_is_counted_out_by_another_one_meanwhile_leaves_the_wish_once(cloud, up, by):
    """`remove` marks a worker and waits until its job lets it go, which a keeper may see; or the other way round."""
    up()
    cloud.cluster("add", "demo", 2, "--yes", "--no-wait")
    gone = instance(cloud, "w0003")
    cloud.ec2.create_tags(Resources=[gone], Tags=[{"Key": "elastic_worker_status", "Value": "REMOVAL_QUEUED"}])

    def other(exchange):
        if gone in (exchange.form.get("Filter.1.Value.1"), exchange.form.get("ResourceId.1")):
            cloud.proxy.before_call = None
            cloud.ec2.create_tags(Resources=[gone], Tags=[{"Key": "dtrain:left", "Value": "yes"}])
            set_tag(cloud, "dtrain:wish", json.dumps({**wish(cloud), "elastic": 1}))
    cloud.proxy.before_call = other
    cloud.cluster(*by)
    assert cloud.proxy.before_call is None and wish(cloud)["elastic"] == 1


def test_a_worker_whose_removal_was_asked_for_by_tags_leaves_the_wish_once(cloud, up):
    up()
    cloud.cluster("add", "demo", 1, "--yes", "--no-wait")
    gone = instance(cloud, "w0003")
    cloud.ec2.create_tags(Resources=[gone], Tags=[{"Key": "elastic_worker_status", "Value": "REMOVED"}])
    cloud.ec2.terminate_instances(InstanceIds=[gone])
    for _ in range(2):
        cloud.cluster(*HEAL)
        assert wish(cloud)["elastic"] == 0 and names(cloud) == ["head", "w0001", "w0002"]
    assert len(cloud.json("events", "demo")["events"]) == 1


def test_one_of_two_reconcilers_acts(cloud, up):
    up()
    set_tag(cloud, "dtrain:healer", f"elsewhere.1.ab {int(time.time())}")
    lose(cloud, "w0001")
    said = cloud.cluster(*HEAL).stderr
    assert "elsewhere.1.ab keeps the cluster" in said and names(cloud) == ["head", "w0002"]
    assert cloud.json("events", "demo")["keeper"]["holder"] == "elsewhere.1.ab"
    set_tag(cloud, "dtrain:healer", f"elsewhere.1.ab {int(time.time()) - 300}")
    cloud.cluster(*HEAL)
    assert names(cloud) == ["head", "w0001", "w0002"]


def test_two_at_the_same_moment_start_one_machine(cloud, up):
    up()
    lose(cloud, "w0001")
    both = [cloud.start("cluster", *HEAL) for _ in range(2)]
    for process in both:
        process.communicate(timeout=120)
    assert names(cloud) == ["head", "w0001", "w0002"] and [process.returncode for process in both] == [0, 0]


def lease(cloud):
    return next((tag["Value"] for tag in group(cloud)["Tags"] if tag["Key"] == "dtrain:healer"), "- 0")


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("moment", ["the lease is written", "a call is under way", "nothing is done"])
def test_a_watch_that_ends_by_a_signal_gives_its_lease_back(cloud, up, moment, end):
    """Whatever it does at that moment, it ends by this signal, and another watch may act at once."""
    up(count=0)
    held = []

    def stop(exchange):
        if exchange.action == {"the lease is written": "CreateTags", "a call is under way": "DescribeInstanceStatus"}.get(moment):
            held.append(lease(cloud).split()[0])
            process.send_signal(end)
            cloud.proxy.after_call = cloud.proxy.before_call = None
    if moment == "a call is under way":
        cloud.proxy.before_call = stop
        cloud.proxy.on("DescribeInstanceStatus", delay(3))
    else:
        cloud.proxy.after_call = stop
    process = cloud.start("cluster", "watch", "demo", "--heal", "--no-head")
    if moment == "nothing is done":
        calls = -1
        while calls < cloud.proxy.count() or lease(cloud) == "- 0":
            calls = cloud.proxy.count()
            time.sleep(4)
        held.append(lease(cloud).split()[0])
        process.send_signal(end)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == -end and "lost workers of cluster demo are not replaced" in said
    assert held != ["-"] and cloud.json("events", "demo")["keeper"] is None


@pytest.mark.parametrize("call", range(1, 8))
def test_a_reconciler_that_is_killed_leaves_nothing_twice(cloud, up, call):
    up()
    lose(cloud, "w0001")
    victim = []

    def kill(exchange):
        done = [one for one in cloud.proxy.calls if one.is_mutating()]
        if victim and len(done) - victim[0] == call:
            process.send_signal(signal.SIGKILL)
    victim.append(len(cloud.proxy.mutating()))
    cloud.proxy.after_call = kill
    process = cloud.start("cluster", *HEAL)
    process.communicate(timeout=120)
    cloud.proxy.after_call = None
    set_tag(cloud, "dtrain:healer", lease(cloud).split()[0] + f" {int(time.time()) - 300}")  # two minutes later
    cloud.cluster(*HEAL)
    assert len(cloud.of_cluster("demo")) == 3
    up()
    assert names(cloud) == ["head", "w0001", "w0002"]


@pytest.mark.parametrize("text,why", [("four", "not what dtrain writes"),
                                      ('{"schema":"dtrain.cluster-wish/9","base":0,"elastic":0}', "newer dtrain"),
                                      ('{"schema":"dtrain.cluster-wish/1","base":0,"elastic":0,"x":1}', "unknown key 'x'")])
def test_a_wish_that_is_nonsense_ends_nothing(cloud, up, text, why):
    up()
    set_tag(cloud, "dtrain:wish", text)
    said = cloud.cluster(*HEAL, status=None)
    assert said.returncode != 0 and why in said.stderr and len(names(cloud)) == 3
    up()
    assert wish(cloud)["base"] == 2


def test_a_machine_with_a_tag_by_hand_is_neither_counted_nor_ended(cloud, up):
    up()
    made = cloud.ec2.run_instances(ImageId=cloud.image(), InstanceType="c5.large", MinCount=1, MaxCount=1, TagSpecifications=[
        {"ResourceType": "instance", "Tags": [{"Key": "dtrain:cluster", "Value": "demo"}]}])["Instances"][0]["InstanceId"]
    lose(cloud, "w0001")
    cloud.cluster(*HEAL)
    alive = {one["InstanceId"] for one in cloud.of_cluster("demo")}
    assert made in alive and len(alive) == 4


def impaired(identity):
    item = (f"<item><instanceId>{identity}</instanceId><systemStatus><status>impaired</status></systemStatus>"
            "<instanceStatus><status>ok</status></instanceStatus></item>")
    return lambda exchange: Answer(200, '<DescribeInstanceStatusResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">'
                                        f"<instanceStatusSet>{item}</instanceStatusSet></DescribeInstanceStatusResponse>")


def from_inside(exchange):
    """As if the machines that ended had shut themselves down."""
    answer = exchange.proxy.strict.answer(exchange)
    answer.body = answer.body.replace(b"Client.UserInitiatedShutdown", b"Client.InstanceInitiatedShutdown")
    return answer


def test_what_a_time_limit_ends_stays_off(cloud, up):
    up("--ttl", "12h")
    cloud.proxy.on("DescribeInstances", from_inside)
    lose(cloud, "w0002")
    said = cloud.cluster(*HEAL).stderr
    assert "as time limits and a failed boot do: w0002" in said and names(cloud) == ["head", "w0001"]
    lose(cloud, "head", "w0001")
    said = cloud.cluster(*HEAL).stderr
    assert "has shut itself down" in said and names(cloud) == [] and wish(cloud)["base"] == 2
    up("--ttl", "12h")
    cloud.cluster(*HEAL)
    assert names(cloud) == ["head", "w0001", "w0002"]


def test_without_a_time_limit_a_worker_that_powers_itself_off_is_a_loss(cloud, up):
    up("--autostop", "off")
    cloud.proxy.on("DescribeInstances", from_inside)
    lose(cloud, "w0002")
    cloud.cluster(*HEAL)
    assert names(cloud) == ["head", "w0001", "w0002"]
    lose(cloud, "head")
    assert "has shut itself down" in cloud.cluster(*HEAL).stderr and names(cloud) == ["w0001", "w0002"]


def test_a_cluster_that_is_not_there_is_not_kept(cloud):
    assert "there is no cluster demo" in cloud.cluster(*HEAL, status=2).stderr
    assert cloud.proxy.mutating() == []


def test_fresh_machines_that_aws_shows_late_are_not_started_twice(cloud, up):
    up()
    lose(cloud, "w0001", "w0002")
    cloud.proxy.lag.looks = {"DescribeInstances": 3, "CreateTags": 2}
    cloud.cluster(*HEAL)
    cloud.proxy.lag.looks = {}
    assert names(cloud) == ["head", "w0001", "w0002"]


@pytest.mark.slow
def test_a_worker_that_stays_sick_is_replaced(cloud, up):
    """By a watch that stays: two minutes of impaired checks, then a new worker, then the end of the old one."""
    up("-w", 3)
    victim = instance(cloud, "w0002")
    cloud.proxy.on("DescribeInstanceStatus", impaired(victim))
    process = cloud.start("cluster", "watch", "demo", "--heal", "--no-head", "--every", 1)
    deadline = time.monotonic() + 280
    while time.monotonic() < deadline and (victim in {one["InstanceId"] for one in cloud.of_cluster("demo")}):
        time.sleep(1)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert names(cloud) == ["head", "w0001", "w0002", "w0003"] and instance(cloud, "w0002") != victim
    assert cloud.json("events", "demo")["keeper"] is None
