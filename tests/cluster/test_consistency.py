"""What AWS tells late: fresh resources that calls do not see yet, lost replies, and commands that run at once."""

import re
import signal

import pytest
from cloud import UP
from faults import Answer, error, lose_reply

EVERYTHING = ["head", "w0001", "w0002"]


def groups(cloud):
    return cloud.ec2.describe_security_groups(Filters=[{"Name": "tag:dtrain:cluster", "Values": ["demo"]}])["SecurityGroups"]


def rules(cloud):
    return {(rule["IpProtocol"], rule.get("FromPort")) for rule in groups(cloud)[0]["IpPermissions"]}


CALLS = ["AuthorizeSecurityGroupIngress", "CreateLaunchTemplate", "RunInstances", "CreateFleet", "CreateTags",
         "DescribeInstances", "DescribeSecurityGroups", "DescribeLaunchTemplates", "DescribeKeyPairs", "*"]


@pytest.mark.parametrize("action", CALLS)
def test_a_fresh_resource_that_a_call_does_not_see_yet_is_waited_for(cloud, up, key, action):
    cloud.proxy.lag.looks = {action: 3}
    up("--placement")
    assert cloud.node_names("demo") == EVERYTHING and len(groups(cloud)) == 1
    assert rules(cloud) == {("tcp", 22), ("-1", None)}
    cloud.proxy.lag.looks = {}
    assert "is up to date" in up("--placement").stdout
    cloud.cluster("down", "demo", "--yes")
    assert cloud.sweep("demo") == []


def test_a_fresh_role_and_file_system_are_waited_for(cloud, up):
    cloud.proxy.lag.looks = {"*": 2}
    up("--elastic-role", "own", "--shared", "efs")
    assert cloud.node_names("demo") == EVERYTHING
    assert len(cloud.client("iam").list_roles()["Roles"]) == 1


@pytest.mark.parametrize("looks", [1, 4])
def test_four_ups_that_are_cut_off_make_one_group(cloud, up, looks):
    """Each is refused at the rule; the next one does not see the group at first."""
    cloud.proxy.on("AuthorizeSecurityGroupIngress", error("UnauthorizedOperation", status=403), calls=range(1, 9))
    cloud.proxy.lag.looks = {"DescribeSecurityGroups": looks}
    for _ in range(4):
        up(status=4)
        cloud.proxy.lag.counted.clear()
    cloud.proxy.plans.clear()
    up()
    assert len(cloud.ec2.describe_security_groups(Filters=[{"Name": "description", "Values": ["dtrain cluster demo"]}])[
        "SecurityGroups"]) == 1
    assert cloud.node_names("demo") == EVERYTHING


def test_a_group_that_is_gone_is_no_open_port(cloud, up):
    """NotFound of a rule's group is no success."""
    up()
    cloud.proxy.on("AuthorizeSecurityGroupIngress", error("InvalidGroup.NotFound", "the group does not exist"))
    assert "InvalidGroup.NotFound" in up("--ssh-from", "203.0.113.0/24", status=4).stderr


def test_a_rule_that_is_said_to_exist_is_looked_for(cloud, up):
    cloud.proxy.on("AuthorizeSecurityGroupIngress", error("InvalidPermission.Duplicate", "there already"), calls=[1])
    assert "InvalidPermission.Duplicate" in up("--timeout", 3, status=4).stderr
    up()
    assert rules(cloud) == {("tcp", 22), ("-1", None)}


# Lost replies.

def no_tokens(cloud):
    """Services that play AWS may know no client tokens."""
    cloud.proxy.strict.once = lambda exchange, rule: rule(exchange)


@pytest.mark.parametrize("looks", [0, 100])
def test_lost_replies_of_a_fleet_make_no_further_machines(cloud, up, looks):
    """Six in a row; with looks, AWS does not show the machines meanwhile."""
    cloud.proxy.lag.looks = {"DescribeInstances": looks}
    cloud.proxy.on("CreateFleet", lose_reply(), calls=range(1, 7))
    up("--timeout", 20, status=None)
    cloud.proxy.lag.looks = {}
    assert len(cloud.of_cluster("demo")) == 3
    up()
    assert cloud.node_names("demo") == EVERYTHING


def test_a_lost_reply_is_followed_by_a_look_before_the_call_is_repeated(cloud, up):
    no_tokens(cloud)
    cloud.proxy.lag.looks = {"DescribeInstances": 2}
    cloud.proxy.on("CreateFleet", lose_reply(), calls=[1])
    up()
    assert cloud.node_names("demo") == EVERYTHING


def fill_subnets(cloud):
    """No address is free in the subnets that are there, and each zone gets one that nobody uses."""
    full = cloud.ec2.describe_subnets()["Subnets"]
    for number, old in enumerate(full):
        made = cloud.ec2.create_subnet(VpcId=old["VpcId"], AvailabilityZone=old["AvailabilityZone"],
                                       CidrBlock=f"172.31.{128 + 16 * number}.0/20")["Subnet"]["SubnetId"]
        cloud.ec2.modify_subnet_attribute(SubnetId=made, MapPublicIpOnLaunch={"Value": True})

    def without_addresses(exchange):
        answer = exchange.forward()
        items = answer.body.split(b"</item>")
        for at, item in enumerate(items):
            if any(old["SubnetId"].encode() in item for old in full):
                items[at] = re.sub(rb"(<availableIpAddressCount>)\d+", rb"\g<1>0", item)
        answer.body = b"</item>".join(items)
        return answer
    cloud.proxy.on("DescribeSubnets", without_addresses)


def cut_off(cloud, action, *words):
    """An `up` that is killed before it has the answer to this call, which takes effect."""
    running = []

    def kill(exchange):
        lost = lose_reply()(exchange)
        running[0].kill()
        return lost
    cloud.proxy.on(action, kill, calls=[1])
    running.append(cloud.start("cluster", "up", "demo", "-w", 2, "--ami", cloud.image(), *UP, *words))
    running[0].communicate(timeout=120)
    assert running[0].returncode == -signal.SIGKILL


@pytest.mark.parametrize("action", ["RunInstances", "CreateFleet"])
def test_an_up_that_was_cut_off_takes_its_machines_although_another_subnet_is_chosen(cloud, up, action):
    """AWS does not show them at once, and the client token belongs to them."""
    cloud.proxy.lag.looks = {"DescribeInstances": 8}
    cut_off(cloud, action)
    fill_subnets(cloud)
    up()
    assert cloud.node_names("demo") == EVERYTHING and len(cloud.instances()) == 3


def test_an_up_that_was_cut_off_without_machines_asks_anew_in_another_subnet(cloud, up):
    """The client token belongs to a call that has started nothing."""
    cloud.proxy.strict.capacity = {("c5.large", "*"): 1}
    cut_off(cloud, "CreateFleet")
    cloud.proxy.strict.capacity = {}
    fill_subnets(cloud)
    up("--timeout", 3)
    assert cloud.node_names("demo") == EVERYTHING
    subnets = [call.form["LaunchTemplateConfigs.1.Overrides.1.SubnetId"] for call in cloud.proxy.calls
               if call.action == "CreateFleet"]
    assert subnets[-2] == subnets[-1] != subnets[0], subnets


def test_an_error_about_a_fresh_template_in_the_answer_of_a_fleet_is_waited_out(cloud, up):
    def not_yet(exchange):
        return Answer(200, '<CreateFleetResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><errorSet><item><errorCode>'
                           "InvalidLaunchTemplateId.NotFound</errorCode><errorMessage>it does not exist</errorMessage></item>"
                           "</errorSet><fleetInstanceSet/></CreateFleetResponse>")
    cloud.proxy.on("CreateFleet", not_yet, calls=[1, 2])
    up()
    assert cloud.node_names("demo") == EVERYTHING
    tokens = [call.form["ClientToken"] for call in cloud.proxy.calls if call.action == "CreateFleet"]
    assert len(tokens) == 3 == len(set(tokens))


# Commands that run at once.

@pytest.mark.parametrize("counts,lag", [((1, 1), 0), ((2, 1), 0), ((2, 1), 3), ((1, 1, 2), 1)])
def test_adds_at_once_make_all_their_machines_with_names_of_their_own(cloud, up, counts, lag):
    up()
    cloud.proxy.lag.looks = {"DescribeInstances": lag}
    running = [cloud.start("cluster", "add", "demo", count, "--yes", "--no-wait") for count in counts]
    for process in running:
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    found = cloud.node_names("demo")
    assert found[:3] == EVERYTHING and len(set(found)) == len(found) == 3 + sum(counts), found


def test_an_up_that_finds_the_cluster_of_another_one_removes_nothing_of_it(cloud, up):
    """The cluster was not there when this one asked its user, and there is no capacity for what this one wants more."""
    image = cloud.image()

    def the_other_is_faster(exchange):
        if exchange.action != "CreateSecurityGroup":
            return
        cloud.proxy.before_call = None
        up("--shared", "efs")
        cloud.proxy.strict.capacity = {("c5.large", "*"): 0}
    cloud.proxy.before_call = the_other_is_faster
    refused = cloud.cluster("up", "demo", "-w", 8, "--ami", image, "--instance-type", "c5.large", "--shared", "efs", "--yes",
                            "--no-wait", status=4)
    assert "2 of 8 workers" in refused.stderr or "0 of 6 workers" in refused.stderr, refused.stderr
    assert cloud.node_names("demo") == EVERYTHING and len(cloud.efs.describe_file_systems()["FileSystems"]) == 1


@pytest.mark.parametrize("count", [2, 3])
def test_ups_at_once_with_other_options_make_each_worker_once(cloud, up, count):
    image = cloud.image()

    def the_other_is_faster(exchange):
        if exchange.action == "CreateFleet":
            cloud.proxy.before_call = None
            up(count=count)
    cloud.proxy.before_call = the_other_is_faster
    cloud.cluster("up", "demo", "-w", 5 - count, "--ami", image, *UP)
    assert cloud.node_names("demo") == ["head", "w0001", "w0002", "w0003"]


def test_an_up_that_fails_leaves_what_another_one_has_finished(cloud, up):
    image = cloud.image()

    def the_other_is_faster(exchange):
        if exchange.action != "CreateFleet":
            return
        cloud.proxy.before_call = None
        up("--shared", "efs")
        cloud.proxy.strict.capacity = {("c5.large", "*"): 0}
    cloud.proxy.before_call = the_other_is_faster
    refused = cloud.cluster("up", "demo", "-w", 8, "--ami", image, *UP, "--shared", "efs", status=4).stderr
    assert "the same command continues" in refused
    assert cloud.node_names("demo") == EVERYTHING and len(cloud.efs.describe_file_systems()["FileSystems"]) == 1


def test_names_that_are_there_twice_are_repaired(cloud, up):
    up()
    cloud.cluster("add", "demo", 1, "--yes", "--no-wait")
    twin = next(one["InstanceId"] for one in cloud.of_cluster("demo") if cloud.tags(one["InstanceId"])["dtrain:node"] == "w0003")
    cloud.ec2.create_tags(Resources=[twin], Tags=[{"Key": "dtrain:node", "Value": "w0002"}])
    up()
    assert cloud.node_names("demo") == [*EVERYTHING, "w0004"] and cloud.tags(twin)["dtrain:node"] == "w0004"


def test_an_add_that_was_cut_off_is_gone_on_with_later(cloud, up):
    """Its machine has no name, and is older than any `add` that still runs."""
    up()
    cloud.proxy.on("CreateTags", error("UnauthorizedOperation", status=403), calls=[1])
    cloud.cluster("add", "demo", 1, "--yes", "--no-wait", status=4)
    assert cloud.node_names("demo") == ["head", "unnamed", "w0001", "w0002"]

    def old(exchange):
        answer = exchange.forward()
        answer.body = re.sub(rb"<launchTime>\d{4}", b"<launchTime>2020", answer.body)
        return answer
    cloud.proxy.on("DescribeInstances", old)
    assert "interrupted" in cloud.cluster("add", "demo", 1, "--yes", "--no-wait").stderr
    assert cloud.node_names("demo") == [*EVERYTHING, "w0003"]


def test_an_add_that_fails_is_gone_on_with_at_once(cloud, up):
    up()
    cloud.proxy.on("CreateTags", error("UnauthorizedOperation", status=403), calls=[1])
    said = cloud.cluster("add", "demo", 2, "--yes", "--no-wait", status=4).stderr
    assert "started so far, for the same command to go on with: i-" in said and len(cloud.of_cluster("demo")) == 5
    assert "was started by an interrupted `add`" in cloud.cluster("add", "demo", 2, "--yes", "--no-wait").stderr
    # Each machine is named by a call of its own: the name that the refused one was to give is not given any more, where
    # the other got the next one.
    assert cloud.node_names("demo") in ([*EVERYTHING, "w0003", "w0004"], [*EVERYTHING, "w0004", "w0005"])


def test_an_add_that_ec2_refuses_speaks_of_no_machines(cloud, up):
    up()
    cloud.proxy.on("CreateFleet", error("UnauthorizedOperation", status=403))
    assert "EC2 may have started" not in cloud.cluster("add", "demo", 1, "--yes", "--no-wait", status=4).stderr
    assert cloud.node_names("demo") == EVERYTHING


def stop_add(cloud, action, number, *words):
    """Ctrl-C once this call of `add` has been answered; what it said."""
    before, running = cloud.proxy.count(action), []

    def stop(exchange):
        if exchange.action == action and exchange.number == before + number:
            running[0].send_signal(signal.SIGINT)
    cloud.proxy.after_call = stop
    running.append(cloud.start("cluster", "add", "demo", *words, "--yes", "--no-wait"))
    said = running[0].communicate(timeout=120)[1]
    cloud.proxy.after_call = None
    assert running[0].returncode == -signal.SIGINT, said
    return said


@pytest.mark.parametrize("action,number", [("CreateFleet", 1), ("CreateTags", 2)])
def test_an_add_that_is_stopped_is_gone_on_with_at_once(cloud, up, action, number):
    """Before its machines have names, or when some have."""
    up()
    said = stop_add(cloud, action, number, 4)
    assert "cluster down" not in said and "run the same command again" in said and len(cloud.of_cluster("demo")) == 7
    assert "was started by an interrupted `add`" in cloud.cluster("add", "demo", 4, "--yes", "--no-wait").stderr
    names = cloud.node_names("demo")
    assert names[:3] == EVERYTHING and "unnamed" not in names and len(set(names)) == len(names) == 7, names
    cloud.cluster("add", "demo", 1, "--yes", "--no-wait")
    assert len(cloud.of_cluster("demo")) == 8


@pytest.mark.parametrize("status", ["ADDED", "REMOVAL_QUEUED"])
def test_workers_of_a_stopped_add_that_trained_meanwhile_are_not_new(cloud, up, status):
    up()
    stop_add(cloud, "CreateFleet", 1, 1)
    [marked] = [one["InstanceId"] for one in cloud.of_cluster("demo") if "dtrain:interrupted" in cloud.tags(one["InstanceId"])]
    cloud.ec2.create_tags(Resources=[marked], Tags=[{"Key": "elastic_worker_status", "Value": status},
                                                    {"Key": "dtrain:node", "Value": "w0003"}])
    assert "interrupted" not in cloud.cluster("add", "demo", 1, "--yes", "--no-wait").stderr
    assert cloud.node_names("demo") == [*EVERYTHING, "w0003", "w0004"]


def test_a_worker_that_cannot_be_marked_leaves_the_others_marked(cloud, up):
    """EC2 does not know it yet."""
    up()
    unknown = []

    def refuse(exchange):
        if "dtrain:interrupted" not in exchange.form.values():
            return None
        ids = sorted(value for key, value in exchange.form.items() if key.startswith("ResourceId"))
        unknown[:] = unknown or ids[:1]
        gone = unknown[0] in ids
        return error("InvalidInstanceID.NotFound", f"The instance ID '{unknown[0]}' does not exist")(exchange) if gone else None
    cloud.proxy.on("CreateTags", refuse)
    said = stop_add(cloud, "CreateFleet", 1, 3)
    marked = [one["InstanceId"] for one in cloud.of_cluster("demo") if "dtrain:interrupted" in cloud.tags(one["InstanceId"])]
    assert len(marked) == 2 and f"started so far, for the same command to go on with: {', '.join(sorted(marked))}" in said
    assert f"started, without a mark: {unknown[0]}: in two minutes, the same command goes on with those without a name" in said
    assert "dtrain cluster status demo lists all of them" in said
