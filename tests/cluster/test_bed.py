"""The account, the proxy and the metadata service themselves, with boto3 as their judge."""

import subprocess
import time
import urllib.error
import urllib.request

import boto3
import faults
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionClosedError
from imds import Authority, Imds


@pytest.fixture(autouse=True)
def all_rights(cloud):
    """These tests are callers of their own: dtrain's policy is not theirs."""
    cloud.proxy.policy = None


def by_proxy(cloud, service="ec2", key="test", secret="test", token=None, attempts=1):
    return boto3.client(service, endpoint_url=cloud.proxy.url, region_name="us-east-1", aws_access_key_id=key,
                        aws_secret_access_key=secret, aws_session_token=token,
                        config=Config(retries={"total_max_attempts": attempts}))


def code_of(error):
    return error.value.response["Error"]["Code"]


def subnets(cloud):
    return {entry["AvailabilityZone"]: entry["SubnetId"] for entry in cloud.ec2.describe_subnets()["Subnets"]}


def test_botocores_signatures_are_accepted(cloud):
    for words in ({}, {"key": "ASIATEST", "secret": "temporary", "token": "session-token"}):
        by_proxy(cloud, **words).describe_instances()
        by_proxy(cloud, "efs", **words).describe_file_systems(CreationToken="a b+c/é")
        by_proxy(cloud, "ssm", **words).get_parameter(Name="/aws/service/canonical/ubuntu")
        by_proxy(cloud, "sts", **words).get_caller_identity()
    assert cloud.proxy.counts() == {"DescribeFileSystems": 2, "DescribeInstances": 2, "GetCallerIdentity": 2, "GetParameter": 2}


def test_wrong_signatures_are_refused(cloud):
    cloud.proxy.forgives = {"SignatureDoesNotMatch", "InvalidClientTokenId", "RequestTimeTooSkewed"}
    with pytest.raises(ClientError) as error:
        by_proxy(cloud, secret="guessed").describe_instances()
    assert code_of(error) == "SignatureDoesNotMatch"
    with pytest.raises(ClientError) as error:
        by_proxy(cloud, key="somebody").describe_instances()
    assert code_of(error) == "InvalidClientTokenId"
    cloud.proxy.clock_skew = 1200
    with pytest.raises(ClientError) as error:
        by_proxy(cloud).describe_instances()
    assert code_of(error) == "RequestTimeTooSkewed"


def test_a_fault_hits_the_calls_that_were_named(cloud):
    cloud.proxy.on("DescribeInstances", faults.error("RequestLimitExceeded", status=503), calls=[2])
    by_proxy(cloud).describe_instances()
    with pytest.raises(ClientError) as error:
        by_proxy(cloud).describe_instances()
    assert code_of(error) == "RequestLimitExceeded"
    by_proxy(cloud).describe_instances()


def test_a_lost_reply_has_happened_all_the_same(cloud):
    cloud.proxy.on("RunInstances", faults.lose_reply(), calls=[1])
    words = {"ImageId": cloud.image(), "InstanceType": "c5.large", "MinCount": 2, "MaxCount": 2, "ClientToken": "one"}
    with pytest.raises(ConnectionClosedError):
        by_proxy(cloud).run_instances(**words)
    assert len(cloud.instances()) == 2
    again = by_proxy(cloud).run_instances(**words)["Instances"]
    assert {entry["InstanceId"] for entry in again} == {entry["InstanceId"] for entry in cloud.instances()}
    with pytest.raises(ClientError) as error:
        by_proxy(cloud).run_instances(**{**words, "MaxCount": 3})
    assert code_of(error) == "IdempotentParameterMismatch"


def test_capacity_bounds_what_comes(cloud):
    cloud.proxy.strict.capacity = {("c5.large", "*"): 3}
    words = {"ImageId": cloud.image(), "InstanceType": "c5.large", "MinCount": 1, "MaxCount": 5}
    assert len(by_proxy(cloud).run_instances(**words)["Instances"]) == 3
    with pytest.raises(ClientError) as error:
        by_proxy(cloud).run_instances(**words)
    assert code_of(error) == "InsufficientInstanceCapacity"
    assert error.value.response["ResponseMetadata"]["HTTPStatusCode"] == 500


def test_a_fleet_tells_what_it_got_and_where_it_did_not(cloud):
    zones = subnets(cloud)
    first, second = sorted(zones)[:2]
    cloud.ec2.create_launch_template(LaunchTemplateName="template", LaunchTemplateData={
        "ImageId": cloud.image(), "InstanceType": "c5.large", "UserData": "IyEvYmluL3NoCg=="})
    cloud.proxy.strict.capacity = {("c5.large", first): 1}
    pools = [{"SubnetId": zones[first], "InstanceType": "c5.large", "Priority": 0},
             {"SubnetId": zones[second], "InstanceType": "c5.large", "Priority": 1}]
    words = {"Type": "instant", "LaunchTemplateConfigs": [
                 {"LaunchTemplateSpecification": {"LaunchTemplateName": "template", "Version": "$Default"}, "Overrides": pools}],
             "TargetCapacitySpecification": {"TotalTargetCapacity": 3, "DefaultTargetCapacityType": "on-demand"},
             "TagSpecifications": [{"ResourceType": "instance", "Tags": [{"Key": "of", "Value": "fleet"}]}]}
    reply = by_proxy(cloud).create_fleet(ClientToken="t", **words)
    assert [len(entry["InstanceIds"]) for entry in reply["Instances"]] == [1, 2]
    assert [entry["ErrorCode"] for entry in reply["Errors"]] == ["InsufficientInstanceCapacity"]
    assert by_proxy(cloud).create_fleet(ClientToken="t", **words)["Instances"] == reply["Instances"]
    assert len(cloud.instances({"Name": "tag:of", "Values": ["fleet"]})) == 3
    words["OnDemandOptions"] = {"MinTargetCapacity": 3, "SingleAvailabilityZone": True}
    words["LaunchTemplateConfigs"][0]["Overrides"] = pools[:1]
    assert by_proxy(cloud).create_fleet(**words)["Instances"] == []
    assert len(cloud.instances()) == 3


def test_states_take_looks_and_a_group_in_use_stays(cloud):
    cloud.proxy.strict.polls = 2
    ec2 = by_proxy(cloud)
    group = ec2.create_security_group(GroupName="g", Description="d")["GroupId"]
    started = ec2.run_instances(ImageId=cloud.image(), InstanceType="c5.large", MinCount=1, MaxCount=1,
                                SecurityGroupIds=[group])["Instances"][0]
    look = [{"Name": "instance-state-name", "Values": ["running"]}]
    states = [bool(ec2.describe_instances(Filters=look)["Reservations"]) for _ in range(3)]
    assert started["State"]["Name"] == "pending" and states[-1] and not states[0]
    with pytest.raises(ClientError) as error:
        ec2.delete_security_group(GroupId=group)
    assert code_of(error) == "DependencyViolation"
    ended = ec2.terminate_instances(InstanceIds=[started["InstanceId"]])["TerminatingInstances"][0]
    assert ended["CurrentState"]["Name"] == "shutting-down"
    with pytest.raises(ClientError):
        ec2.delete_security_group(GroupId=group)
    while ec2.describe_instances()["Reservations"][0]["Instances"][0]["State"]["Name"] != "terminated":
        pass
    ec2.delete_security_group(GroupId=group)


def test_placement_groups_come_and_go(cloud):
    ec2 = by_proxy(cloud)
    tags = [{"ResourceType": "placement-group", "Tags": [{"Key": "dtrain:cluster", "Value": "demo"}]}]
    ec2.create_placement_group(GroupName="p", Strategy="cluster", TagSpecifications=tags)
    assert ec2.describe_placement_groups()["PlacementGroups"][0]["Tags"] == tags[0]["Tags"]
    ec2.delete_placement_group(GroupName="p")
    assert ec2.describe_placement_groups()["PlacementGroups"] == []


def test_the_clock_of_the_account_can_be_wrong(cloud):
    cloud.proxy.forgives = {"RequestTimeTooSkewed"}
    cloud.proxy.clock_skew = 1200
    answer = urllib.request.Request(cloud.proxy.url)
    with pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.urlopen(answer)
    late = time.mktime(time.strptime(error.value.headers["Date"], "%a, %d %b %Y %H:%M:%S GMT")) - time.timezone
    assert 1100 < late - time.time() < 1300
    cloud.proxy.wrong.clear()


def test_metadata_needs_a_token(cloud, tmp_path):
    """openssl verifies its identity document."""
    instance = cloud.ec2.run_instances(ImageId=cloud.image(), InstanceType="c5.large", MinCount=1, MaxCount=1)["Instances"][0]
    authority = Authority()
    imds = Imds.of(instance, "#!/bin/sh\n", authority)
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(f"{imds.url}/latest/meta-data/instance-id")
    token = urllib.request.urlopen(urllib.request.Request(
        f"{imds.url}/latest/api/token", method="PUT", headers={"X-aws-ec2-metadata-token-ttl-seconds": "60"})).read().decode()

    def get(path):
        request = urllib.request.Request(f"{imds.url}/latest/{path}", headers={"X-aws-ec2-metadata-token": token})
        return urllib.request.urlopen(request).read().decode()

    assert get("meta-data/instance-id") == instance["InstanceId"] and get("user-data") == "#!/bin/sh\n"
    (tmp_path / "certificate").write_text(authority.pem)
    (tmp_path / "signed").write_text(f"-----BEGIN PKCS7-----\n{get('dynamic/instance-identity/rsa2048')}-----END PKCS7-----\n")
    verified = subprocess.run(["openssl", "smime", "-verify", "-in", "signed", "-inform", "PEM", "-certfile", "certificate",
                               "-noverify", "-nointern"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert verified.stdout.replace("\r\n", "\n") == get("dynamic/instance-identity/document")
    imds.close()
