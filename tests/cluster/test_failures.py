"""Failures between dtrain and the account: requirements 4, 5, 8 to 11, 13 and 17."""

import json
import signal
import time

import pytest
from cloud import LIVE, UP
from faults import Answer, delay, end_at_once, ended_by, error, lose_reply, lose_request, page

# After some of the calls, and among the slow tests after each.
STEPS = pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.slow)])
EVERYTHING = ["head", "w0001", "w0002"]


@pytest.fixture
def up(cloud):
    """up(words): makes cluster demo with two workers; the finished command."""
    image = cloud.image()

    def run(*words, status=0, types="c5.large", count=2):
        return cloud.cluster("up", "demo", "-w", count, "--ami", image, "--instance-type", types, "--yes", "--no-wait",
                             *words, status=status)
    return run


def an_error(process):
    """The error at the end of stderr."""
    return json.loads([line for line in process.stderr.splitlines() if line.startswith('{"error"')][-1])["error"]


@pytest.mark.parametrize("action", ["RunInstances", "CreateFleet", "CreateSecurityGroup", "CreateLaunchTemplate",
                                    "CreateTags", "AuthorizeSecurityGroupIngress"])
@pytest.mark.parametrize("fault", [lose_reply, lose_request])
def test_r04_a_lost_message_makes_nothing_twice(cloud, up, action, fault):
    cloud.proxy.on(action, fault(), calls=[1])
    up()
    assert cloud.node_names("demo") == EVERYTHING
    assert cloud.proxy.count(action) >= 2 or action in ("RunInstances", "CreateFleet")
    groups = cloud.ec2.describe_security_groups(Filters=[{"Name": "tag:dtrain:cluster", "Values": ["demo"]}])
    assert len(groups["SecurityGroups"]) == 1


@pytest.mark.parametrize("action", ["RunInstances", "CreateFleet"])
def test_r04_also_where_the_account_knows_no_client_tokens(cloud, up, action):
    cloud.proxy.strict.once = lambda exchange, rule: rule(exchange)
    cloud.proxy.on(action, lose_reply(), calls=[1])
    up()
    assert cloud.node_names("demo") == EVERYTHING


def kill_after(cloud, number, *words):
    """Starts dtrain and kills it once its call of that number was answered; False: it had fewer."""
    process = cloud.start("cluster", *words)
    cloud.proxy.calls.clear()

    def after(exchange):
        if exchange.total == number:
            process.send_signal(signal.SIGKILL)
    cloud.proxy.after_call = after
    process.communicate()
    cloud.proxy.after_call = None
    return process.returncode == -signal.SIGKILL


def calls_of_an_up(cloud, up, step):
    cloud.proxy.calls.clear()
    up()
    first = next(at for at, call in enumerate(cloud.proxy.calls, 1) if call.is_mutating())
    last = len(cloud.proxy.calls)
    cloud.cluster("down", "demo", "--yes")
    return range(first, last + 1, step)


@STEPS
def test_r05_killed_after_any_call_up_goes_on(cloud, up, step):
    image = cloud.image()
    for number in calls_of_an_up(cloud, up, step):
        kill_after(cloud, number, "up", "demo", "-w", 2, "--ami", image, *UP)
        up()
        assert cloud.node_names("demo") == EVERYTHING, f"killed after call {number}"
        cloud.cluster("down", "demo", "--yes")
        assert cloud.sweep("demo") == [], f"killed after call {number}"


@STEPS
def test_r05_killed_after_any_call_down_leaves_nothing(cloud, up, step):
    image = cloud.image()
    for number in calls_of_an_up(cloud, up, step):
        kill_after(cloud, number, "up", "demo", "-w", 2, "--ami", image, *UP)
        cloud.cluster("down", "demo", "--yes")
        assert cloud.sweep("demo") == [], f"killed after call {number}"


@STEPS
def test_r05_a_killed_down_is_gone_on_with(cloud, up, step):
    up()
    cloud.proxy.calls.clear()
    number = 0
    while True:
        number += step
        if not kill_after(cloud, number, "down", "demo", "--yes"):
            break
        cloud.cluster("down", "demo", "--yes")
        assert cloud.sweep("demo") == [], f"killed after call {number}"
        up()
    assert number > 8


def test_r08_enough_of_the_workers_are_kept_and_said(cloud, up):
    cloud.proxy.strict.capacity = {("c5.large", "*"): 3}
    told = json.loads(up("--min-workers", 1, "--json", status=3, count=4).stdout)
    assert told["wanted"] == 4 and told["workers"] == 2
    assert told["attempts"][0]["code"] == "InsufficientInstanceCapacity" and told["attempts"][0]["got"] == 2
    assert cloud.node_names("demo") == EVERYTHING
    cloud.proxy.strict.capacity = {}
    up("--min-workers", 1, count=4)
    assert cloud.node_names("demo") == EVERYTHING + ["w0003", "w0004"]


def test_r08_too_few_workers_are_none(cloud, up):
    cloud.proxy.strict.capacity = {("c5.large", "*"): 2}
    refused = an_error(up("--json", status=4))
    assert refused["kind"] == "capacity" and refused["details"]["cause"] == "capacity"
    assert "InsufficientInstanceCapacity" in refused["details"]["attempt_1"]
    assert cloud.of_cluster("demo") == [] and cloud.sweep("demo") == []


def test_r08_what_was_there_before_stays_when_more_cannot_be_had(cloud, up):
    up()
    cloud.proxy.strict.capacity = {("c5.large", "*"): 0}
    refused = up(status=4, count=4).stderr
    assert cloud.node_names("demo") == EVERYTHING
    assert "keep running and cost" in refused and "the same command continues" in refused


WAITING = ("--instance-type", "c5.large", "--yes", "--timeout", 20)
DISKS = "Client.VolumeLimitExceeded"


def test_r08_a_worker_that_ends_at_once_is_none(cloud):
    """EC2 starts the machines, and then has no disk for one of them."""
    cloud.proxy.on("CreateFleet", end_at_once(cloud), calls=[1])
    cloud.proxy.on("DescribeInstances", ended_by(DISKS))
    refused = cloud.cluster("up", "demo", "-w", 2, "--ami", cloud.image(), *WAITING, status=4).stderr
    assert f"has ended: {DISKS}" in refused and "1 of 2 workers stay, and at least 2 are required" in refused
    assert cloud.sweep("demo") == []


def test_r08_a_worker_that_ends_at_once_is_said_where_the_others_are_enough(cloud):
    """Nothing answers as the head here, so it goes no further; test_site.py has the exit code."""
    cloud.proxy.on("CreateFleet", end_at_once(cloud), calls=[1])
    cloud.proxy.on("DescribeInstances", ended_by(DISKS))
    said = cloud.cluster("up", "demo", "-w", 2, "--min-workers", 1, "--ami", cloud.image(), *WAITING, status=None).stderr
    assert f"has ended: {DISKS}" in said and len(cloud.of_cluster("demo")) == 2


def test_r08_a_head_that_ends_at_once_is_told_and_started_again(cloud, up):
    cloud.proxy.on("RunInstances", end_at_once(cloud), calls=[1])
    cloud.proxy.on("DescribeInstances", ended_by(DISKS))
    refused = cloud.cluster("up", "demo", "-w", 2, "--ami", cloud.image(), *WAITING, status=4).stderr
    assert "head (i-" in refused and f"has ended: {DISKS}" in refused and "the same command continues" in refused
    up()
    assert cloud.node_names("demo") == EVERYTHING


def without_ended(exchange):
    """EC2 lists machines for an hour after their end."""
    names = [value for field, value in exchange.form.items() if field.endswith(".Name")]
    if "instance-state-name" not in names:
        lead = f"Filter.{len(names) + 1}"
        exchange.set_form(**{f"{lead}.Name": "instance-state-name"},
                          **{f"{lead}.Value.{place}": state for place, state in enumerate(LIVE, 1)})


def test_r08_a_head_that_ended_long_ago_is_started_again(cloud, up):
    """EC2 remembers its client token for longer."""
    cloud.proxy.on("CreateLaunchTemplate", error("UnauthorizedOperation", status=403))
    up(status=4)
    cloud.ec2.terminate_instances(InstanceIds=[one["InstanceId"] for one in cloud.of_cluster("demo")])
    cloud.proxy.plans.clear()
    cloud.proxy.on("DescribeInstances", without_ended)
    up()
    assert cloud.node_names("demo") == EVERYTHING and cloud.proxy.count("RunInstances") == 3


@pytest.mark.parametrize("again", [(), ("--min-workers", 3)])
def test_r08_a_refusal_is_not_repeated_once_there_is_capacity(cloud, up, again):
    """EC2 keeps the answer to a client token, so the next `up` must not send the token of the refused one."""
    up()
    cloud.proxy.strict.capacity = {("c5.large", "*"): 0}
    up(status=4, count=4)
    assert an_error(up(*again, "--json", status=4, count=4))["kind"] == "capacity"
    cloud.proxy.strict.capacity = {}
    up(*again, count=4)
    assert cloud.node_names("demo") == EVERYTHING + ["w0003", "w0004"]


def test_r08_a_quota_in_the_answer_of_a_fleet_is_not_repeated_either(cloud, up):
    up()
    refused = ("<CreateFleetResponse><errorSet><item><errorCode>VcpuLimitExceeded</errorCode>"
               "<errorMessage>32 vCPUs</errorMessage></item></errorSet><fleetInstanceSet/></CreateFleetResponse>")
    once, rule = cloud.proxy.strict.once, lambda exchange: Answer(200, refused)
    cloud.proxy.strict.once = lambda exchange, usual: once(exchange, rule if exchange.action == "CreateFleet" else usual)
    assert "VcpuLimitExceeded" in up(status=4, count=4).stderr
    cloud.proxy.strict.once = once
    up(count=4)
    assert cloud.node_names("demo") == EVERYTHING + ["w0003", "w0004"]


def pools_asked(cloud):
    asked = [call.form for call in cloud.proxy.calls if call.action == "CreateFleet"]
    zones = {subnet["SubnetId"]: subnet["AvailabilityZone"] for subnet in cloud.ec2.describe_subnets()["Subnets"]}
    lead = "LaunchTemplateConfigs.1.Overrides.1."
    return [(form["TargetCapacitySpecification.DefaultTargetCapacityType"], form[lead + "InstanceType"],
             zones[form[lead + "SubnetId"]][-1]) for form in asked]


def test_r09_pools_are_asked_once_each_by_zone_type_and_market(cloud, up):
    cloud.proxy.strict.capacity = {("m5.large", "*"): 0, ("c5.large", "us-east-1a"): 1, ("c5.large", "*"): 1}
    up("--spot", "prefer", "--json", status=4, types="c5.large,m5.large")
    asked = pools_asked(cloud)
    assert len(asked) == len(set(asked))
    assert asked[:3] == [("spot", "c5.large", "a"), ("spot", "c5.large", "b"), ("spot", "c5.large", "c")]
    kinds = [(market, kind) for market, kind, _ in asked]
    assert list(dict.fromkeys(kinds)) == [("spot", "c5.large"), ("spot", "m5.large"), ("on-demand", "c5.large"),
                                          ("on-demand", "m5.large")]


def test_r09_the_next_pool_helps(cloud, up):
    cloud.proxy.strict.capacity = {("c5.large", "*"): 1}
    up(types="c5.large,m5.large")
    assert sorted(one["InstanceType"] for one in cloud.of_cluster("demo")) == ["c5.large", "m5.large", "m5.large"]


def test_r09_a_quota_stops_at_once(cloud, up):
    cloud.proxy.on("CreateFleet", error("VcpuLimitExceeded", "32 vCPUs"))
    refused = an_error(up("--json", status=4))
    assert cloud.proxy.count("CreateFleet") == 1
    assert "VcpuLimitExceeded" in refused["message"] and "Service Quotas" in refused["hint"]


SPOT_IS_FULL = "MaxSpotInstanceCountExceeded"
NO_SPOT_ROLE = "AuthFailure.ServiceLinkedRoleCreationNotPermitted"
IN_THE_ANSWER = (f"<CreateFleetResponse><errorSet><item><errorCode>{SPOT_IS_FULL}</errorCode><errorMessage>0 of kind g</errorMessage>"
                 "</item></errorSet><fleetInstanceSet/></CreateFleetResponse>")


@pytest.mark.parametrize("code", [SPOT_IS_FULL, NO_SPOT_ROLE])
@pytest.mark.parametrize("in_the_answer", [False, True])
def test_r09_no_right_to_spot_instances_leaves_those_on_demand(cloud, up, code, in_the_answer):
    answer = Answer(200, IN_THE_ANSWER.replace(SPOT_IS_FULL, code))
    cloud.proxy.on("CreateFleet", (lambda exchange: answer) if in_the_answer else error(code), calls=[1])
    said = up("--spot", "prefer", types="c5.large,m5.large").stderr
    assert code in said and cloud.node_names("demo") == EVERYTHING
    assert [one[:2] for one in pools_asked(cloud)] == [("spot", "c5.large"), ("on-demand", "c5.large")]


@pytest.mark.parametrize("code,cause,advice", [(SPOT_IS_FULL, "quota", "Service Quotas"),
                                               (NO_SPOT_ROLE, "permission", "create-service-linked-role")])
def test_r09_no_right_to_spot_instances_stops_where_nothing_else_is_allowed(cloud, up, code, cause, advice):
    cloud.proxy.on("CreateFleet", error(code))
    refused = an_error(up("--spot", "only", "--json", status=4))
    assert refused["details"]["cause"] == cause and advice in refused["hint"] and cloud.proxy.count("CreateFleet") == 1


REFUSALS = [("UnauthorizedOperation", 403, "permission"), ("AccessDenied", 403, "permission"),
            ("OptInRequired", 401, "permission"), ("AuthFailure", 401, "credential"),
            ("InvalidClientTokenId", 403, "credential"), ("ExpiredToken", 400, "credential"),
            ("SignatureDoesNotMatch", 403, "credential"), ("VcpuLimitExceeded", 400, "quota"),
            ("InstanceLimitExceeded", 400, "quota"), ("MaxSpotInstanceCountExceeded", 400, "quota"),
            ("InvalidParameterValue", 400, "config"), ("InvalidAMIID.NotFound", 400, "config"),
            ("InvalidKeyPair.NotFound", 400, "config"), ("InvalidSubnetID.NotFound", 400, "config"),
            ("MissingParameter", 400, "config"), ("Surprise", 400, "bug")]


@pytest.mark.parametrize("code,status,cause", REFUSALS)
def test_r10_a_refusal_is_told_as_it_is(cloud, up, code, status, cause):
    cloud.proxy.on("RunInstances", error(code, "because of this", status))
    refused = an_error(up("--json", status=4))
    assert code in refused["message"] and "because of this" in refused["message"]
    assert "planted-request-id" in refused["message"] and refused["details"]["request_id"] == "planted-request-id"
    assert refused["details"]["cause"] == cause and refused["details"]["code"] == code
    assert cloud.proxy.count("RunInstances") == 1


@pytest.mark.parametrize("code,status", [("InsufficientInstanceCapacity", 500), ("Unsupported", 400),
                                         ("InsufficientFreeAddressesInSubnet", 400)])
def test_r10_no_capacity_is_no_other_trouble(cloud, up, code, status):
    cloud.proxy.on("RunInstances", error(code, "none left", status))
    refused = an_error(up("--json", status=4))
    assert refused["details"]["cause"] == "capacity" and code in refused["details"]["attempt_1"]


def test_r10_a_page_that_is_no_document_is_told(cloud, up):
    cloud.proxy.on("DescribeSubnets", page(500))
    refused = an_error(cloud.run("cluster", "up", "demo", "-w", "1", "--ami", cloud.image(), *UP, "--json", status=4,
                                 AWS_MAX_ATTEMPTS="2"))
    assert refused["details"]["cause"] == "network" and refused["details"]["tries"] == "2"


def test_r11_a_throttled_call_is_made_again_with_growing_pauses(cloud, up):
    cloud.proxy.on("DescribeVpcs", error("RequestLimitExceeded", "slow down", 503), calls=[1, 2, 3, 4, 5])
    up()
    assert cloud.node_names("demo") == EVERYTHING and cloud.proxy.count("DescribeVpcs") == 6


def test_r11_no_right_is_asked_for_once(cloud, up):
    cloud.proxy.on("DescribeVpcs", error("UnauthorizedOperation", "no", 403))
    up(status=4)
    assert cloud.proxy.count("DescribeVpcs") == 1


def test_r11_tries_end_with_the_time(cloud, up):
    cloud.proxy.on("DescribeVpcs", page(503))
    begin = time.monotonic()
    refused = up("--timeout", 2, "--json", status=4)
    assert an_error(refused)["details"]["cause"] == "throttle"
    assert time.monotonic() - begin < 60  # generous for a loaded machine; without the limit it takes minutes


def test_r11_ctrl_c_tells_what_stays_and_how_to_go_on(cloud):
    cloud.proxy.on("CreateFleet", delay(30))
    process = cloud.start("cluster", "up", "demo", "-w", 2, "--ami", cloud.image(), *UP)
    while cloud.proxy.count("CreateFleet") == 0:
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    begin = time.monotonic()
    _, err = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGINT
    assert time.monotonic() - begin < 28  # the answer takes 30
    assert "run the same command again" in err and "dtrain cluster down demo" in err


@pytest.mark.parametrize("skew", [1200, -1200])
def test_r13_a_wrong_clock_is_made_good(cloud, up, skew):
    cloud.proxy.clock_skew = skew
    cloud.proxy.forgives |= {"RequestTimeTooSkewed", "SignatureDoesNotMatch", "RequestExpired", "AuthFailure",
                             "RequestInTheFuture"}
    up()
    assert cloud.node_names("demo") == EVERYTHING


def test_r17_only_that_node_goes(cloud, up):
    up()
    cloud.cluster("add", "demo", 2, "--yes", "--no-wait")
    victim = next(one["InstanceId"] for one in cloud.of_cluster("demo")
                  if cloud.tags(one["InstanceId"])["dtrain:node"] == "w0003")
    removed = cloud.json("remove", "demo", "w0003", "--yes")
    assert removed["instance_id"] == victim
    assert cloud.node_names("demo") == EVERYTHING + ["w0004"]
    assert cloud.tags(victim)["elastic_worker_status"] == "REMOVED"
    assert cloud.json("remove", "demo", "w0003", "--yes")["was_there"] is False


def test_r17_the_job_is_asked_first_also_where_the_end_is_not_waited_for(cloud, up):
    """There is no head at that address, so the attempt shows."""
    up()
    cloud.cluster("add", "demo", 1, "--yes", "--no-wait")
    said = cloud.cluster("remove", "demo", "w0003", "--yes", "--no-wait").stderr
    assert "the head is unreachable, so w0003 is ended without removing it from a job first" in said
    assert cloud.node_names("demo") == EVERYTHING


@pytest.mark.parametrize("node", ["head", "w0001"])
def test_r17_head_and_base_workers_go_only_by_force(cloud, up, node):
    up()
    assert "--force" in cloud.cluster("remove", "demo", node, "--yes", status=2).stderr
    assert cloud.node_names("demo") == EVERYTHING
    cloud.cluster("remove", "demo", node, "--yes", "--force")
    assert node not in cloud.node_names("demo")
    up()
    assert cloud.node_names("demo") == EVERYTHING


def test_r17_below_the_least_number_of_workers_only_force_goes(cloud, up):
    up("--min-workers", 2)
    cloud.cluster("add", "demo", 1, "--yes", "--no-wait")
    cloud.cluster("remove", "demo", "w0001", "--yes", "--force")
    assert wished(cloud)["base"] == 1  # and no longer two
    cloud.cluster("add", "demo", 1, "--yes", "--no-wait")
    lost = next(one["InstanceId"] for one in cloud.of_cluster("demo") if cloud.tags(one["InstanceId"])["dtrain:node"] == "w0002")
    cloud.ec2.terminate_instances(InstanceIds=[lost])
    cloud.cluster("remove", "demo", "w0003", "--yes")
    refused = cloud.cluster("remove", "demo", "w0004", "--yes", status=2).stderr
    assert "without w0004 cluster demo has 0 workers, and at least 1 are required" in refused
    assert cloud.node_names("demo") == ["head", "w0004"]
    cloud.cluster("remove", "demo", "w0004", "--yes", "--force")
    assert cloud.node_names("demo") == ["head"]


def wished(cloud):
    groups = cloud.ec2.describe_security_groups(Filters=[{"Name": "tag:dtrain:cluster", "Values": ["demo"]}])
    return json.loads(next(tag["Value"] for tag in groups["SecurityGroups"][0]["Tags"] if tag["Key"] == "dtrain:wish"))


def test_r17_an_unknown_node_is_refused(cloud, up):
    up()
    assert "w0042" in cloud.cluster("remove", "demo", "w0042", "--yes", status=2).stderr
