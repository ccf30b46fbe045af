"""A head that is lost while no machine of the user watches: its workers start it again, by a role that may do just that."""

import json
import re
import shlex
import subprocess
import time
import urllib.parse

import pytest
from faults import Answer, error, lose_reply
from imds import Authority, Imds
from policy import policy_of
from reservations import NAMESPACE

HEAD_ROLE = "dtrain-demo-us-east-1"
WORKER_ROLE = HEAD_ROLE + "-w"
SHARED = ("--shared", "/mnt/shared")
PATIENCE = 4  # seconds; `up` takes no less than two minutes


def node(cloud, name):
    return next(one for one in cloud.of_cluster("demo") if cloud.tags(one["InstanceId"])["dtrain:node"] == name)


def heads(cloud):
    return [one for one in cloud.of_cluster("demo") if cloud.tags(one["InstanceId"]).get("dtrain:role") == "head"]


def rights(cloud, role):
    document = cloud.client("iam").get_role_policy(RoleName=role, PolicyName="dtrain")["PolicyDocument"]
    return json.loads(urllib.parse.unquote(document)) if isinstance(document, str) else document


def group_tags(cloud):
    found = cloud.ec2.describe_security_groups(Filters=[{"Name": "tag:dtrain:cluster", "Values": ["demo"]}])["SecurityGroups"][0]
    return {tag["Key"]: tag["Value"] for tag in found["Tags"]}


def assigned(user_data, name):
    """The value of a variable of the boot script."""
    line = next(line for line in user_data.splitlines() if line.startswith(name + "="))
    return shlex.split(line.partition("=")[2])[0]


class Guards:
    """The processes of workers that watch the head, with the rights of the workers' role and no others."""

    def __init__(self, cloud):
        self.cloud, self.authority, self.running = cloud, Authority(), []

    def start(self, name):
        """That of this worker, as its boot script starts it; the head's address is one that nobody has here."""
        cloud, instance = self.cloud, node(self.cloud, name)
        script = cloud.user_data(instance["InstanceId"])
        assert assigned(script, "guard") == "yes"
        order = json.loads(assigned(script, "node_json"))
        assert order["replace_head_after"] == 180
        file, log = cloud.folder / f"{name}.{len(self.running)}.json", cloud.folder / f"{name}.{len(self.running)}.log"
        file.write_text(json.dumps(order | {"head": "127.0.0.1", "port": 9, "login": "root", "replace_head_after": PATIENCE}))
        metadata = Imds.of(instance, script, self.authority)
        process = cloud.start("agent", "--guard", file, streams=open(log, "w"), AWS_EC2_METADATA_SERVICE_ENDPOINT=metadata.url)
        self.running.append((process, metadata))
        return log

    def with_rights(self, document):
        self.cloud.proxy.policy = policy_of(json.dumps(document), self.cloud.proxy.account)

    def end(self):
        codes = [process.poll() for process, _ in self.running]
        for process, metadata in self.running:
            process.kill()
            process.wait()
            metadata.close()
        self.running.clear()
        assert set(codes) <= {None}, f"a guard ended by itself: {codes}"


@pytest.fixture
def guards(cloud):
    made = Guards(cloud)
    yield made
    made.end()


def wait_for(condition, log, seconds=180):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, log.read_text()
        time.sleep(0.1)


def lose_head(cloud):
    lost = heads(cloud)[0]
    cloud.ec2.terminate_instances(InstanceIds=[lost["InstanceId"]])
    return lost


def test_a_worker_starts_the_head_again(cloud, demo, guards):
    demo("--heal", *SHARED, "--tag", "project=birds")
    old_tags, old_data = cloud.tags(heads(cloud)[0]["InstanceId"]), cloud.user_data(heads(cloud)[0]["InstanceId"])
    assert heads(cloud)[0]["IamInstanceProfile"]["Arn"].endswith("/" + HEAD_ROLE)
    assert node(cloud, "w0001")["IamInstanceProfile"]["Arn"].endswith("/" + WORKER_ROLE)
    lost, user = lose_head(cloud), cloud.proxy.policy
    guards.with_rights(rights(cloud, WORKER_ROLE))
    log = guards.start("w0001")
    wait_for(lambda: heads(cloud) and "dtrain:event:00" in group_tags(cloud), log)
    [head] = heads(cloud)
    assert head["InstanceId"] != lost["InstanceId"] and head["PrivateIpAddress"] == lost["PrivateIpAddress"]
    assert (head["InstanceType"], head["SubnetId"]) == (lost["InstanceType"], lost["SubnetId"])
    assert head["IamInstanceProfile"]["Arn"].endswith("/" + HEAD_ROLE) and cloud.user_data(head["InstanceId"]) == old_data
    own = {key: value for key, value in cloud.tags(head["InstanceId"]).items() if not key.startswith("aws:")}
    assert own == {key: value for key, value in old_tags.items() if key != "dtrain:launch"} and own["project"] == "birds"
    wait_for(lambda: "w0001 started" in log.read_text(), log)
    assert group_tags(cloud)["dtrain:healer"].startswith("- ")
    cloud.proxy.policy = user
    [event] = cloud.json("events", "demo")["events"]
    assert f"the head {lost['InstanceId']} has ended, says EC2" in event["text"] and f"w0001 started {head['InstanceId']}" in event["text"]
    assert demo("--heal", *SHARED)["changed"] is False
    cloud.cluster("down", "demo", "--yes")
    assert cloud.sweep("demo") == [] and cloud.client("iam").list_roles()["Roles"] == []


def test_two_at_once_start_one_head(cloud, demo, guards):
    """Two processes of the first worker, which both may act: EC2 takes their orders as one. One reply is lost besides."""
    demo("--heal", *SHARED)
    lose_head(cloud)
    guards.with_rights(rights(cloud, WORKER_ROLE))
    before = cloud.proxy.count("RunInstances")
    cloud.proxy.on("RunInstances", lose_reply(), calls=[1])
    logs = [guards.start("w0001") for _ in range(2)]
    for log in logs:
        wait_for(lambda: "started i-" in log.read_text() or "runs, says EC2" in log.read_text(), log)
    assert len(heads(cloud)) == 1 and cloud.proxy.count("RunInstances") - before >= 2


def test_a_head_that_runs_is_left_alone_though_nobody_reaches_it(cloud, demo, guards):
    demo("--heal", *SHARED)
    there, before = heads(cloud)[0]["InstanceId"], cloud.proxy.count("RunInstances")
    log = guards.start("w0001")
    wait_for(lambda: "says EC2, and cannot be reached from here" in log.read_text(), log)
    looks = cloud.proxy.count("DescribeInstances")
    wait_for(lambda: cloud.proxy.count("DescribeInstances") >= looks + 2 * PATIENCE, log)
    assert [one["InstanceId"] for one in heads(cloud)] == [there] and cloud.proxy.count("RunInstances") == before


def test_a_cluster_that_was_stopped_or_is_kept_by_another_is_left_alone(cloud, demo, guards):
    demo("--heal", *SHARED)
    group = cloud.ec2.describe_security_groups(Filters=[{"Name": "tag:dtrain:cluster", "Values": ["demo"]}])["SecurityGroups"][0]

    def tag(key, value):
        cloud.ec2.create_tags(Resources=[group["GroupId"]], Tags=[{"Key": key, "Value": value}])
    tag("dtrain:healer", f"office.1 {int(time.time())}")
    lose_head(cloud)
    log = guards.start("w0001")
    wait_for(lambda: "office.1 keeps the cluster" in log.read_text(), log)
    tag("dtrain:stopped", "2026-01-31T12:00:00Z")
    wait_for(lambda: "only its owner starts it again" in log.read_text(), log)
    assert heads(cloud) == []


def test_a_worker_without_its_role_starts_nothing_and_says_why(cloud, demo, guards):
    demo("--heal", *SHARED)
    lose_head(cloud)
    guards.with_rights({"Version": "2012-10-17", "Statement": []})
    log = guards.start("w0001")
    wait_for(lambda: "UnauthorizedOperation" in log.read_text(), log)
    guards.end()
    assert heads(cloud) == [] and {one.split()[0] for one in cloud.proxy.denied} <= {
        "ec2:DescribeInstances", "ec2:DescribeSecurityGroups", "ec2:DescribeLaunchTemplates"}
    cloud.proxy.denied.clear()


def test_another_type_is_taken_at_the_same_address(cloud, guards):
    cloud.cluster("up", "demo", "-w", 1, "--ami", cloud.image(), "--instance-type", "c5.large,m5.large", "--yes", "--no-wait",
                  "--heal", *SHARED)
    lost = lose_head(cloud)
    guards.with_rights(rights(cloud, WORKER_ROLE))
    cloud.proxy.strict.capacity[("c5.large", "*")] = 0
    log = guards.start("w0001")
    wait_for(lambda: "c5.large: InsufficientInstanceCapacity" in log.read_text(), log)
    [head] = heads(cloud)
    assert (head["InstanceType"], head["PrivateIpAddress"]) == ("m5.large", lost["PrivateIpAddress"])


def test_an_attempt_that_fails_is_told_and_repeated(cloud, demo, guards):
    demo("--heal", *SHARED)
    lose_head(cloud)
    cloud.proxy.on("RunInstances", error("InsufficientInstanceCapacity", status=500))
    log = guards.start("w0001")
    wait_for(lambda: "could not start one" in log.read_text() and "dtrain:event:00" in group_tags(cloud), log)
    assert "InsufficientInstanceCapacity" in group_tags(cloud)["dtrain:event:00"] and heads(cloud) == []
    assert group_tags(cloud)["dtrain:healer"].startswith("- ")
    wait_for(lambda: "this worker tries again to start one" in log.read_text(), log)


def test_the_role_may_start_a_head_by_the_template_and_nothing_else(cloud, demo, program, guards):
    demo("--heal", *SHARED)
    worker = policy_of(json.dumps(rights(cloud, WORKER_ROLE)), cloud.proxy.account)
    calls = []
    cloud.proxy.before_call = calls.append
    lose_head(cloud)
    guards.with_rights(rights(cloud, WORKER_ROLE))
    log = guards.start("w0001")
    wait_for(lambda: heads(cloud), log)
    guards.end()
    order = next(one for one in calls if one.action == "RunInstances")
    plain = {"Action": "RunInstances", "MinCount": "1", "MaxCount": "1", "ImageId": cloud.image()}
    tagged = {key: value for key, value in order.form.items() if key.startswith("TagSpecification")}

    def refused(form):
        order.form = form
        found = worker.refusal(order)
        return str(found[0]) if found else None
    asked = {name: value for name, value in order.form.items() if name != "UserData"}
    asked = {name: value for name, value in asked.items() if name.startswith(("LaunchTemplate.", "TagSpecification")) or name in plain and name != "ImageId"}
    assert refused(dict(asked)) is None
    assert "instance/new" in refused(plain | tagged), "without the template"
    assert "image/" in refused(asked | {"ImageId": cloud.image()}), "another image"
    assert "security-group/" in refused(asked | {"SecurityGroupId.1": node(cloud, "w0001")["SecurityGroups"][0]["GroupId"]})
    template = next(one for one in cloud.ec2.describe_launch_templates()["LaunchTemplates"] if one["LaunchTemplateName"] == "dtrain-demo")
    assert refused(asked | {"LaunchTemplate.LaunchTemplateId": template["LaunchTemplateId"]}) is not None, "that of the workers"
    as_worker = {key: "worker" if value == "head" else value for key, value in asked.items()}
    assert "instance/new" in refused(as_worker), "with the role of a worker"
    printed = json.loads(subprocess.run([program, "cluster", "iam-policy", "demo", "--for", "worker", "--heal", "--region", "us-east-1",
                                         "--json"], check=True, capture_output=True, text=True).stdout)
    there = rights(cloud, WORKER_ROLE)
    assert re.sub(r":\*:(?=[a-z-]+/)", ":123456789012:", json.dumps(printed)).replace("iam::*", "iam::123456789012") == json.dumps(there)
    assert "give --heal too" in cloud.cluster("iam-policy", "--for", "worker", status=2).stderr


def test_the_head_gives_its_workers_their_role(cloud, demo):
    """A worker that the head starts watches the head too."""
    demo("--heal", *SHARED)
    lost = node(cloud, "w0002")["InstanceId"]
    cloud.ec2.terminate_instances(InstanceIds=[lost])
    cloud.proxy.policy = policy_of(json.dumps(rights(cloud, HEAD_ROLE)), cloud.proxy.account)
    cloud.cluster("watch", "demo", "--heal", "--no-head", "--once")
    assert node(cloud, "w0002")["IamInstanceProfile"]["Arn"].endswith("/" + WORKER_ROLE)


def test_the_profile_of_workers_may_be_new_to_ec2(cloud, demo):
    cloud.proxy.on("CreateFleet", lambda exchange: Answer(200, (
        f'<CreateFleetResponse xmlns="{NAMESPACE}"><errorSet><item><errorCode>InvalidParameterValue</errorCode><errorMessage>Value '
        f"({WORKER_ROLE}) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name</errorMessage></item>"
        "</errorSet><fleetInstanceSet/></CreateFleetResponse>")), calls=[1])
    demo("--heal", *SHARED)
    assert cloud.node_names("demo") == ["head", "w0001", "w0002"]


@pytest.mark.parametrize(("words", "said"), [
    (("--heal",), "workers cannot start a lost head again"),
    (("--heal", *SHARED, "--elastic-role", "theirs"), "its workers get no role"),
    (("--heal", *SHARED, "--replace-head-after", "off"), "workers do not start a lost head again")])
def test_where_workers_cannot_start_a_head_up_says_so(cloud, up, words, said):
    cloud.client("iam").create_instance_profile(InstanceProfileName="theirs")
    assert said in up(*words).stderr
    assert "guard=no" in cloud.user_data(node(cloud, "w0001")["InstanceId"]) and "IamInstanceProfile" not in node(cloud, "w0001")
    assert len(cloud.ec2.describe_launch_templates()["LaunchTemplates"]) == 1
    assert WORKER_ROLE not in [one["RoleName"] for one in cloud.client("iam").list_roles()["Roles"]]


def test_a_patience_that_is_too_short_or_without_heal_is_refused(cloud):
    words = ("plan", "demo", "-w", 1, "--instance-type", "c5.large", "--ami", cloud.image(), "--replace-head-after")
    assert "give 2m or more" in cloud.cluster(*words, "60s", "--heal", status=2).stderr
    assert "--heal" in cloud.cluster(*words, "10m", status=2).stderr


def test_a_stack_has_no_such_role(cloud):
    words = ("template", "demo", "-w", 1, "--instance-type", "c5.large", "--ami", cloud.image(), "--heal", *SHARED)
    resources = json.loads(cloud.cluster(*words).stdout)["Resources"]
    assert [name for name in resources if "Role" in name] == ["HeadRole"]
    assert "guard=no" in json.dumps(resources["WorkerTemplate"])


def test_a_watch_that_knows_nothing_of_it_takes_the_head_that_a_worker_started(cloud, demo, guards):
    """EC2 shows the watch no head yet, but refuses its address: there is one."""
    demo("--heal", *SHARED)
    lost, user = lose_head(cloud), cloud.proxy.policy
    guards.with_rights(rights(cloud, WORKER_ROLE))
    log = guards.start("w0001")
    wait_for(lambda: "w0001 started" in log.read_text(), log)
    guards.end()
    cloud.proxy.policy = user
    [head] = heads(cloud)
    cloud.proxy.lag.fresh["RunInstances", head["InstanceId"]] = True
    cloud.proxy.lag.looks = {"DescribeInstances": 4}
    said = cloud.cluster("watch", "demo", "--heal", "--no-head", "--once").stderr
    assert [one["InstanceId"] for one in heads(cloud)] == [head["InstanceId"]], said
    assert head["PrivateIpAddress"] == lost["PrivateIpAddress"]


def test_another_watch_moves_the_head_and_the_template_follows(cloud, demo):
    """Its address is taken, so the head is elsewhere; the next one is started there."""
    demo("--heal", *SHARED)
    lost = lose_head(cloud)
    cloud.stranger_at(lost["PrivateIpAddress"])
    said = cloud.cluster("watch", "demo", "--heal", "--no-head", "--once").stderr
    assert heads(cloud), said
    [head] = heads(cloud)
    assert head["PrivateIpAddress"] != lost["PrivateIpAddress"]
    template = next(one for one in cloud.ec2.describe_launch_templates()["LaunchTemplates"] if one["LaunchTemplateName"].endswith("-head"))
    data = cloud.ec2.describe_launch_template_versions(LaunchTemplateId=template["LaunchTemplateId"], Versions=["$Default"])
    assert data["LaunchTemplateVersions"][0]["LaunchTemplateData"]["NetworkInterfaces"][0]["PrivateIpAddress"] == head["PrivateIpAddress"]
