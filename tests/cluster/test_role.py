"""The role by which the head of a cluster follows its tags: requirement 6 for IAM, and what the role may do."""

import json
import urllib.parse

import pytest
from cloud import UP
from faults import error
from policy import Needed, policy_of, tags_as_keys

NAME, PATH = "dtrain-demo-us-east-1", "/dtrain/us-east-1/demo/"
UNKNOWN_PROFILE = error("InvalidParameterValue", f"Value ({NAME}) for parameter iamInstanceProfile.name is invalid. Invalid IAM "
                        "Instance Profile name")


@pytest.fixture
def iam(cloud):
    return cloud.client("iam")


def profiles(cloud):
    """{node's name: the instance profile that it was given}"""
    return {cloud.tags(one["InstanceId"])["dtrain:node"]: one.get("IamInstanceProfile", {}).get("Arn", "").rpartition("/")[2]
            for one in cloud.of_cluster("demo")}


def roles(iam):
    return [role["RoleName"] for role in iam.list_roles()["Roles"]], [
        profile["InstanceProfileName"] for profile in iam.list_instance_profiles()["InstanceProfiles"]]


def rights(iam):
    document = iam.get_role_policy(RoleName=NAME, PolicyName="dtrain")["PolicyDocument"]
    if isinstance(document, str):
        document = json.loads(urllib.parse.unquote(document))
    return document["Statement"]


def test_the_head_alone_gets_a_role_that_ends_with_the_cluster(cloud, demo, iam):
    words = ("demo", "-w", 2, "--instance-type", "c5.large", "--ami", cloud.image(), "--elastic-role")
    assert "role" in [action["step"] for action in cloud.json("plan", *words)["actions"]]
    assert cloud.proxy.mutating() == []
    demo("--elastic-role")
    assert roles(iam) == ([NAME], [NAME]) and iam.get_role(RoleName=NAME)["Role"]["Path"] == PATH
    assert {"Key": "dtrain:cluster", "Value": "demo"} in iam.list_role_tags(RoleName=NAME)["Tags"]
    assert profiles(cloud) == {"head": NAME, "w0001": "", "w0002": ""}
    cloud.proxy.calls.clear()
    assert demo("--elastic-role")["changed"] is False and demo()["changed"] is False
    assert cloud.proxy.mutating() == []
    assert {NAME} <= set(cloud.json("down", "demo", "--yes")["removed"])
    assert roles(iam) == ([], []) and cloud.sweep("demo") == []


def test_the_role_may_read_tag_the_status_and_end_workers_of_this_cluster_alone(demo, iam):
    demo("--elastic-role")
    read, tag, end = rights(iam)
    assert all(action.startswith("ec2:Describe") for action in read["Action"])
    instances = "arn:aws:ec2:us-east-1:123456789012:instance/*"
    assert (tag["Action"], tag["Resource"]) == ("ec2:CreateTags", instances)
    assert tag["Condition"] == {"StringEquals": {"aws:ResourceTag/dtrain:cluster": "demo"},
                                "ForAllValues:StringEquals": {"aws:TagKeys": ["elastic_worker_status"]}}
    assert (end["Action"], end["Resource"]) == ("ec2:TerminateInstances", instances)
    assert end["Condition"] == {"StringEquals": {"aws:ResourceTag/dtrain:cluster": "demo", "aws:ResourceTag/dtrain:role": "worker"}}
    trust = iam.get_role(RoleName=NAME)["Role"]["AssumeRolePolicyDocument"]
    assert trust["Statement"][0]["Principal"] == {"Service": "ec2.amazonaws.com"}


def test_the_role_of_a_head_that_heals_is_enough_to_heal(cloud, demo, iam, program):
    """The calls of `watch --heal`, held to the rights of the head's role and not to those of the user."""
    demo("--heal")
    head = next(one for one in cloud.of_cluster("demo") if cloud.tags(one["InstanceId"])["dtrain:role"] == "head")
    assert profiles(cloud)["head"] == NAME and "\nheal=yes\n" in cloud.user_data(head["InstanceId"])
    lost = next(one for one in cloud.of_cluster("demo") if cloud.tags(one["InstanceId"])["dtrain:node"] == "w0002")
    cloud.ec2.terminate_instances(InstanceIds=[lost["InstanceId"]])
    cloud.proxy.policy = policy_of(json.dumps({"Version": "2012-10-17", "Statement": rights(iam)}), cloud.proxy.account)
    cloud.cluster("watch", "demo", "--heal", "--no-head", "--once")
    assert cloud.node_names("demo") == ["head", "w0001", "w0002"]
    printed = cloud.cluster("iam-policy", "demo", "--for", "head", "--heal", "--json").stdout
    assert {one["Sid"] for one in json.loads(printed)["Statement"]} == {one["Sid"] for one in rights(iam)}
    assert "--for head" in cloud.cluster("iam-policy", "--heal", status=2).stderr


def test_a_program_on_a_head_that_heals_ends_no_head_and_changes_no_secret(cloud, demo, iam):
    """Every program there can use the role."""
    demo("--heal")
    policy = policy_of(json.dumps({"Version": "2012-10-17", "Statement": rights(iam)}), cloud.proxy.account)
    nodes = {cloud.tags(one["InstanceId"])["dtrain:node"]: one["InstanceId"] for one in cloud.of_cluster("demo")}
    group = cloud.ec2.describe_security_groups(Filters=[{"Name": "tag:dtrain:cluster", "Values": ["demo"]}])["SecurityGroups"][0]
    there = {"security-group": {tag["Key"]: tag["Value"] for tag in group["Tags"]}} | {
        name: cloud.tags(identity) for name, identity in nodes.items()}

    def may(action, on, keys=()):
        kind = on if on in ("security-group", "volume") else "instance"
        more = {"aws:TagKeys": list(keys)} if keys else {}
        return policy.allows(Needed(f"ec2:{action}", f"arn:aws:ec2:us-east-1:123456789012:{kind}/x", **tags_as_keys(
            "Resource", there[on]), **more), "us-east-1")

    assert may("TerminateInstances", "w0001") and not may("TerminateInstances", "head")
    assert may("CreateTags", "w0001", ["dtrain:node", "Name"]) and may("CreateTags", "security-group", ["dtrain:healer", "dtrain:event:3"])
    assert not may("CreateTags", "head", ["dtrain:node"])
    for key in ("dtrain:cluster", "dtrain:role", "demo-aws-dl-cfn-elastic-worker", "anything"):
        assert not may("CreateTags", "w0001", [key, "Name"]), key
    for key in ("dtrain:admission", "dtrain:cluster", "dtrain:head", "dtrain:option:image", "dtrain:rules", "dtrain:stopped", "x"):
        assert not may("CreateTags", "security-group", [key, "dtrain:healer"]), key
    for role, allowed in (("worker", True), ("head", False)):
        tags = tags_as_keys("Request", {"dtrain:cluster": "demo", "dtrain:role": role})
        right = Needed("ec2:RunInstances", "arn:aws:ec2:us-east-1:123456789012:instance/new", **tags)
        assert policy.allows(right, "us-east-1") == allowed, role


def test_a_profile_of_the_account_is_used_and_stays(cloud, demo, iam):
    iam.create_instance_profile(InstanceProfileName="theirs")
    demo("--elastic-role", "theirs")
    assert profiles(cloud) == {"head": "theirs", "w0001": "", "w0002": ""}
    cloud.cluster("down", "demo", "--yes")
    assert roles(iam) == ([], ["theirs"])


def test_a_profile_that_is_not_there_is_refused_before_anything_is_made(cloud):
    refused = cloud.cluster("up", "demo", "-w", 1, "--ami", cloud.image(), "--elastic-role", "none-such", *UP, status=4)
    assert "none-such" in refused.stderr and cloud.proxy.mutating() == []


def test_a_role_of_that_name_that_is_not_the_cluster_s_is_left_alone(cloud, demo, iam):
    iam.create_role(RoleName=NAME, AssumeRolePolicyDocument="{}", Path="/theirs/")
    refused = cloud.cluster("up", "demo", "-w", 1, "--ami", cloud.image(), "--elastic-role", "own", *UP, status=4)
    assert "/theirs/" in refused.stderr
    cloud.cluster("down", "demo", "--yes")
    assert roles(iam) == ([NAME], []) and iam.list_role_policies(RoleName=NAME)["PolicyNames"] == []


def test_the_head_waits_for_ec2_to_know_its_profile(cloud, demo):
    cloud.proxy.on("RunInstances", UNKNOWN_PROFILE, calls=[1, 2])
    demo("--elastic-role")
    assert profiles(cloud)["head"] == NAME and len(cloud.of_cluster("demo")) == 3


@pytest.mark.slow
@pytest.mark.parametrize("step", ["CreateRole", "PutRolePolicy", "CreateInstanceProfile", "AddRoleToInstanceProfile"])
def test_an_up_that_failed_at_the_role_goes_on_or_goes_away(cloud, demo, iam, step):
    """The next `up` uses what is left of the role, and `down` finds it without options."""
    cloud.proxy.on(step, error("AccessDenied", status=403), calls=[1, 3])
    cloud.cluster("up", "demo", "-w", 2, "--ami", cloud.image(), "--elastic-role", *UP, status=4)
    demo("--elastic-role")
    assert profiles(cloud)["head"] == NAME
    cloud.cluster("down", "demo", "--yes")
    assert roles(iam) == ([], [])
    cloud.run("cluster", "up", "demo", "-w", 1, "--ami", cloud.image(), "--elastic-role", *UP, status=None)
    cloud.cluster("down", "demo", "--yes")
    assert roles(iam) == ([], []) and cloud.sweep("demo") == []


def test_who_may_not_read_iam_ends_a_cluster_without_a_role_but_is_told_of_one(cloud, demo, iam):
    demo()
    cloud.proxy.on("ListInstanceProfiles", error("AccessDenied", status=403))
    cloud.cluster("down", "demo", "--yes")
    assert cloud.sweep("demo") == []
    cloud.proxy.plans.clear()
    demo("--elastic-role")
    cloud.proxy.on("ListInstanceProfiles", error("AccessDenied", status=403))
    left = cloud.json("down", "demo", "--yes", status=3)["leftover"]
    assert [(one["kind"], one["id"]) for one in left] == [("role", NAME)]
    cloud.proxy.plans.clear()
    cloud.cluster("down", "demo", "--yes")
    assert roles(iam) == ([], [])


def test_down_waits_while_iam_says_that_the_role_is_in_use(cloud, demo, iam):
    """IAM is eventually consistent: a policy or a profile that is gone counts for some seconds."""
    demo("--elastic-role")
    cloud.proxy.on("DeleteRole", error("DeleteConflict", "must delete policies first", 409), calls=[1, 2])
    assert cloud.json("down", "demo", "--yes")["leftover"] == [] and roles(iam) == ([], [])


@pytest.mark.slow
def test_a_role_that_a_person_holds_on_to_is_told_and_left(cloud, demo, iam):
    demo("--elastic-role")
    cloud.proxy.on("DeleteRole", error("DeleteConflict", "must detach all policies first", 409))
    left = cloud.json("down", "demo", "--yes", status=3)["leftover"]
    assert [(one["kind"], one["id"]) for one in left] == [("role", NAME)] and "DeleteConflict" in left[0]["why"]
    cloud.proxy.plans.clear()
    cloud.cluster("down", "demo", "--yes")
    assert roles(iam) == ([], [])


def test_the_template_has_the_role(cloud):
    words = ("demo", "-w", 1, "--instance-type", "c5.large", "--ami", cloud.image())
    assert not [one for one in json.loads(cloud.cluster("template", *words).stdout)["Resources"] if "Role" in one]
    template = json.loads(cloud.cluster("template", *words, "--elastic-role").stdout)
    stacks = cloud.client("cloudformation")
    stacks.create_stack(StackName="demo", TemplateBody=json.dumps(template), Capabilities=["CAPABILITY_IAM"])
    assert stacks.describe_stacks(StackName="demo")["Stacks"][0]["StackStatus"] == "CREATE_COMPLETE"
    iam = cloud.client("iam")
    assert [role["Path"] for role in iam.list_roles()["Roles"]] == [PATH]
    made = template["Resources"]["HeadRole"]["Properties"]["Policies"][0]["PolicyDocument"]["Statement"]
    assert [one["Action"] for one in made[1:]] == ["ec2:CreateTags", "ec2:TerminateInstances"]
    assert template["Resources"]["HeadTemplate"]["Properties"]["LaunchTemplateData"]["IamInstanceProfile"] == {
        "Name": {"Ref": "HeadProfile"}}


def test_emr_has_rights_of_its_own(cloud):
    refused = cloud.cluster("plan", "demo", "-w", 1, "--on", "emr", "--release", "emr-7.1.0", "--root-gb", 60,
                            "--instance-type", "m5.xlarge", "--elastic-role", status=2)
    assert "--elastic-role" in refused.stderr
