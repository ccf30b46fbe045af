"""`cluster iam-policy`: its list of calls is that of the sources, and AWS refuses everything else. The proxy holds all other
tests of this folder to the same policy."""

import json
import pathlib
import re
import subprocess

import pytest
from cloud import UP
from policy import Needed, policy_of

ROOT = pathlib.Path(__file__).parents[2]
# Where calls of AWS for clusters are made. EFS has paths instead of names; the proxy holds its calls to the policy.
CALLERS = ("src/cluster", "src/cli/commands/cluster", "src/job/coordinator", "src/doctor")
VERBS = ("Add|Allocate|Associate|Attach|Authorize|Cancel|Create|Delete|Describe|Detach|Disable|Enable|Get|Import|List|Modify|Put|"
         "Reboot|Release|Remove|Request|Reset|Resume|Revoke|Run|Send|Start|Stop|Suspend|Tag|Terminate|Untag|Update")
CALL = re.compile(rf'"((?:{VERBS})[A-Z][A-Za-z]+)"')
# Names of fields and documents that begin like calls.
FIELDS = {"AssociatePublicIpAddress", "DeleteOnTermination", "DescribeAutoScalingGroupsResult", "DescribeStackResourcesResult",
          "DescribeStacksResult", "GetCallerIdentityResult", "GetInstanceProfileResult", "GetRoleResult", "ReleaseLabel",
          "StartTime", "TagSpecifications", "RequestTag"}
# Rights that AWS asks for beside a call, and the call that needs none.
BESIDE = {"ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface", "ec2:DescribeNetworkInterfaceAttribute",
          "ec2:DescribeNetworkInterfaces", "ec2:ModifyNetworkInterfaceAttribute", "elasticfilesystem:TagResource", "elasticmapreduce:AddTags", "fsx:TagResource", "iam:PassRole",
          "iam:CreateServiceLinkedRole", "iam:TagInstanceProfile", "iam:TagRole", "kms:CreateGrant", "kms:Decrypt",
          "kms:GenerateDataKeyWithoutPlaintext", "kms:ReEncrypt*"}
FREE = {"GetCallerIdentity"}
KEY = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
BOUNDARY = "arn:aws:iam::123456789012:policy/boundary"


def calls_of_sources():
    files = [file for folder in CALLERS for file in (ROOT / folder).rglob("*.[ch]pp") if file.name != "rights.cpp"]
    return {call for file in files for call in CALL.findall(file.read_text())} - FIELDS


def printed(program, *words):
    return subprocess.run([program, "cluster", "iam-policy", *words], check=True, capture_output=True, text=True)


def actions(document):
    return {action for one in document["Statement"]
            for action in (one["Action"] if isinstance(one["Action"], list) else [one["Action"]])}


def test_the_policy_names_each_call_of_the_sources_and_no_other(program):
    named = {one for one in actions(json.loads(printed(program, "--adopt", "--kms-key", KEY).stdout)) if not one.startswith("elasticfilesystem:")} - BESIDE
    calls = calls_of_sources()
    assert {one.partition(":")[2] for one in named} == calls - FREE
    assert len(calls) > 50


def test_what_carries_no_tag_is_not_the_holder_s(cloud, up, policy):
    """The evaluator of these tests refuses what the policy is narrowed against."""
    up("--elastic-role", "own")
    instances = {"own": cloud.of_cluster("demo")[0]["InstanceId"], "another": cloud.ec2.run_instances(
        ImageId=cloud.image(), MinCount=1, MaxCount=1)["Instances"][0]["InstanceId"]}
    allowed = {whose: policy.allows(Needed("ec2:TerminateInstances", f"arn:aws:ec2:us-east-1:123456789012:instance/{identity}", **{
        f"aws:ResourceTag/{key}": value for key, value in cloud.tags(identity).items()}), "us-east-1")
        for whose, identity in instances.items()}
    assert allowed == {"own": True, "another": False}
    assert not policy.allows(Needed("ec2:RunInstances", "arn:aws:ec2:us-east-1:123456789012:instance/new"), "us-east-1")
    assert not policy.allows(Needed("iam:CreateRole", "arn:aws:iam::123456789012:role/admin"), "us-east-1")
    assert not policy.allows(Needed("iam:PassRole", "arn:aws:iam::123456789012:role/admin",
                                    **{"iam:PassedToService": "ec2.amazonaws.com"}), "us-east-1")
    assert not policy.allows(Needed("ec2:DeleteVpc"), "us-east-1")


def test_a_call_without_a_right_is_refused_as_aws_does(cloud, up, program):
    document = json.loads(printed(program).stdout)
    for one in document["Statement"]:
        if one["Sid"] == "StartFleets":
            one["Action"] = "ec2:CreateFleets"
    cloud.proxy.policy = policy_of(json.dumps(document), cloud.proxy.account)
    said = up(status=4).stderr
    assert "UnauthorizedOperation" in said and "ec2:CreateFleet" in said
    assert [one.split()[0] for one in cloud.proxy.denied] == ["ec2:CreateFleet"]
    cloud.proxy.denied.clear()


def test_a_policy_of_one_cluster_makes_and_ends_no_other(cloud, up, program):
    cloud.proxy.policy = policy_of(printed(program, "demo", "--region", "us-east-1").stdout, cloud.proxy.account)
    image = cloud.image()
    up("--elastic-role", "own")
    assert cloud.proxy.denied == []
    cloud.cluster("up", "other", "-w", 1, "--ami", image, *UP, status=4)
    assert "ec2:CreateSecurityGroup" in cloud.proxy.denied[0] and "'other'" in cloud.proxy.denied[0]
    cloud.cluster("list", "--region", "eu-west-1", status=4)
    cloud.proxy.denied.clear()
    cloud.cluster("down", "demo", "--yes")
    assert cloud.sweep("demo") == [] and cloud.proxy.denied == []


def test_a_role_has_the_boundary_that_the_policy_asks_for(cloud, up, program):
    cloud.proxy.policy = policy_of(printed(program, "--permissions-boundary", BOUNDARY).stdout, cloud.proxy.account)
    up("--elastic-role", "own", status=4)
    assert ["iam:CreateRole"] == [one.split()[0] for one in cloud.proxy.denied]
    cloud.proxy.denied.clear()
    cloud.cluster("down", "demo", "--yes")
    up("--elastic-role", "own", "--permissions-boundary", BOUNDARY)
    role = cloud.client("iam").get_role(RoleName="dtrain-demo-us-east-1")["Role"]
    assert role["PermissionsBoundary"]["PermissionsBoundaryArn"] == BOUNDARY
    cloud.cluster("down", "demo", "--yes")
    assert cloud.client("iam").list_roles()["Roles"] == []


def test_the_policy_of_a_head_is_that_of_its_role(cloud, up, program):
    up("--elastic-role", "own")
    there = cloud.client("iam").get_role_policy(RoleName="dtrain-demo-us-east-1", PolicyName="dtrain")["PolicyDocument"]
    shown = json.loads(printed(program, "demo", "--for", "head", "--region", "us-east-1").stdout)
    for one in shown["Statement"][1:]:
        one["Resource"] = one["Resource"].replace(":*:", ":123456789012:")  # the role's names its account
    assert shown == there


def test_the_boundary_reaches_a_template(cloud):
    words = ("template", "demo", "-w", 1, "--instance-type", "c5.large", "--ami", cloud.image(), "--elastic-role", "own")
    made = json.loads(cloud.cluster(*words, "--permissions-boundary", BOUNDARY).stdout)["Resources"]["HeadRole"]["Properties"]
    assert made["PermissionsBoundary"] == BOUNDARY


@pytest.mark.parametrize(("words", "said"), [
    (("--permissions-boundary", "boundary"), "--permissions-boundary 'boundary' is no ARN of a policy"),
    (("--pass-role", "nodes"), "--pass-role 'nodes' is no ARN of a role"),
    (("--bucket", "s3://photos"), "--bucket 's3://photos' is no name of a bucket"),
    (("--kms-key", "alias/training"), "--kms-key 'alias/training' is no ARN of a key"),
    (("--kms-key", "training"), "--kms-key 'training' is neither an ARN, an alias nor an id"),
    (("--region", "Europe"), "--region 'Europe' is no region"), (("a b",), "is no name for a cluster"),
    (("--for", "head", "--bucket", "photos"), "--bucket is for the policy of a user")])
def test_a_scope_that_is_none_is_refused(cloud, words, said):
    refused = cloud.cluster("iam-policy", *words, status=2)
    assert said in refused.stderr and refused.stdout == "" and cloud.proxy.count() == 0


def test_a_boundary_without_a_role_is_refused(cloud):
    words = ("plan", "demo", "-w", 1, "--instance-type", "c5.large", "--ami", cloud.image(), "--permissions-boundary")
    assert "--elastic-role own" in cloud.cluster(*words, BOUNDARY, status=2).stderr
    assert "is no ARN of a policy" in cloud.cluster(*words, "boundary", "--elastic-role", "own", status=2).stderr


@pytest.mark.parametrize(("words", "partition"), [((), "aws-cn"), (("--region", "us-gov-west-1"), "aws-us-gov")])
def test_a_policy_names_the_partition_of_its_region_or_of_the_user_s(cloud, words, partition):
    text = cloud.run("cluster", "iam-policy", *words, AWS_REGION="cn-north-1").stdout
    assert set(re.findall(r"arn:([\w-]+):", text)) == {partition}


def test_what_the_policy_leaves_out_is_said(cloud):
    said = cloud.cluster("iam-policy").stderr
    assert "--permissions-boundary" in said and "--bucket" in said
    assert cloud.cluster("iam-policy", "--permissions-boundary", BOUNDARY, "--bucket", "photos").stderr == ""
    assert cloud.cluster("iam-policy", "--for", "head").stderr == ""
    assert "IAM takes 6144" in cloud.cluster("iam-policy", "--bucket", ",".join(f"photographs-{one}" for one in range(60))).stderr
