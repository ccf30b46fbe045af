"""`--shared fsx`: a file system of FSx for Lustre, made for the cluster in its security group, or one that is there. lustre.py plays
FSx by its documents; what a node mounts is a test of its script."""

import json
import time

import pytest
from faults import error, refusal


@pytest.fixture
def fsx(cloud):
    return cloud.client("fsx")


def systems(fsx):
    return fsx.describe_file_systems()["FileSystems"]


def script(cloud, node):
    one = next(one["InstanceId"] for one in cloud.of_cluster("demo") if cloud.tags(one["InstanceId"])["dtrain:node"] == node)
    return cloud.user_data(one)


def made_with_wait(cloud, *words, status=0):
    """`up` that waits for FSx, but for no nodes: the proxy shows no machine that runs."""
    return cloud.cluster("up", "demo", "-w", 2, "--ami", cloud.image(), "--instance-type", "c5.large", "--yes", *words, status=status)


def test_it_is_made_once_before_any_machine_and_all_nodes_mount_it(cloud, up, fsx):
    up("--shared", "fsx")
    one, = systems(fsx)
    assert one["StorageCapacity"] == 1200 and one["LustreConfiguration"]["DeploymentType"] == "PERSISTENT_2"
    assert {"Key": "dtrain:cluster", "Value": "demo"} in one["Tags"]
    order = [call.action for call in cloud.proxy.calls if call.action in ("CreateFileSystem", "RunInstances", "AuthorizeSecurityGroupIngress")]
    assert order.index("CreateFileSystem") > max(at for at, name in enumerate(order) if name.startswith("Authorize"))
    assert order.index("CreateFileSystem") < order.index("RunInstances")
    for node in ("head", "w0001"):
        text = script(cloud, node)
        assert f"file_system={one['FileSystemId']}" in text and f"mount_name={one['FileSystemId'][-8:]}" in text
        assert "shared=lustre" in text
    assert "is up to date" in up("--shared", "fsx").stdout and len(systems(fsx)) == 1


def test_down_ends_it_with_the_cluster_and_only_when_asked(cloud, up, fsx):
    up("--shared", "fsx:2400")
    cloud.proxy.calls.clear()
    said = cloud.cluster("down", "demo", "--yes", status=2).stderr
    assert "of FSx for Lustre is in the network of cluster demo, and goes with it" in said and "$348.00 a month" in said
    assert cloud.proxy.mutating() == [] and len(cloud.of_cluster("demo")) == 3
    cloud.cluster("down", "demo", "--delete-storage", "--yes")
    assert systems(fsx) == [] and cloud.sweep("demo") == []
    order = [call.action for call in cloud.proxy.calls if call.action in ("DeleteFileSystem", "DeleteSecurityGroup")]
    assert order == ["DeleteFileSystem", "DeleteSecurityGroup"]


def test_cost_tells_its_price(cloud, up, fsx):
    up("--shared", "fsx:2400")
    one, = systems(fsx)
    assert cloud.json("cost", "demo")["storage"] == [{"file_system": one["FileSystemId"], "dollars_per_month": pytest.approx(348)}]


def test_down_waits_for_none_whose_deletion_is_refused(cloud, up, fsx):
    """The group, in which its network interface is, is kept without a try: EC2 would say for minutes that it is in use."""
    up("--shared", "fsx")
    one, = systems(fsx)
    cloud.proxy.on("DeleteFileSystem", error("AccessDeniedException", "not you", 403))
    begin = time.monotonic()
    left = cloud.json("down", "demo", "--delete-storage", "--yes", status=3)["leftover"]
    assert left[0]["id"] == one["FileSystemId"] and "not you" in left[0]["why"]
    assert [kept["kind"] for kept in left] == ["file system", "security group"]
    assert cloud.proxy.count("DeleteSecurityGroup") == 0 and time.monotonic() - begin < 60  # without it, a quarter of an hour


def test_down_names_one_that_it_could_not_list_at_first(cloud, up, fsx):
    up("--shared", "fsx")
    one, = systems(fsx)
    refused = []

    def refuse_once(exchange):
        if exchange.service != "fsx" or refused or not cloud.proxy.count("DeleteLaunchTemplate"):
            return None
        refused.append(exchange)
        return refusal(exchange, "BadRequest")
    cloud.proxy.on("DescribeFileSystems", refuse_once)
    left = cloud.json("down", "demo", "--delete-storage", "--yes", status=3)["leftover"]
    assert ("file system", one["FileSystemId"]) in [(kept["kind"], kept["id"]) for kept in left]
    assert "security group" in [kept["kind"] for kept in left] and cloud.proxy.count("DeleteSecurityGroup") == 0
    cloud.proxy.plans.clear()
    cloud.cluster("down", "demo", "--delete-storage", "--yes")
    assert systems(fsx) == [] and cloud.sweep("demo") == []


def test_a_cluster_without_machines_goes_with_its_file_system(cloud, up, fsx):
    zones = [one["ZoneName"] for one in cloud.ec2.describe_availability_zones()["AvailabilityZones"]]
    cloud.proxy.strict.capacity = {("*", zone): 0 for zone in zones}
    assert "has been removed" in up("--shared", "fsx", status=4).stderr
    assert systems(fsx) == [] and cloud.sweep("demo") == []


def test_a_lost_reply_makes_no_second_one(cloud, up, fsx):
    from faults import lose_reply
    cloud.proxy.on("CreateFileSystem", lose_reply(), calls=[1])
    up("--shared", "fsx")
    assert len(systems(fsx)) == 1 and cloud.proxy.count("CreateFileSystem") == 2


def test_a_file_system_that_fails_stops_before_machines_start(cloud, fsx):
    def fail(exchange):
        answer = cloud.proxy.strict.answer(exchange)
        answer.body = answer.body.replace(b'"AVAILABLE"', b'"FAILED"')
        return answer
    cloud.proxy.on("DescribeFileSystems", lambda exchange: fail(exchange) if exchange.service == "fsx" else None)
    said = made_with_wait(cloud, "--shared", "fsx", status=4).stderr
    assert "is in state FAILED: FSx could not make it" in said and cloud.of_cluster("demo") == []


def test_one_that_is_there_is_mounted_and_stays(cloud, up, fsx):
    subnet = cloud.ec2.describe_subnets()["Subnets"][0]["SubnetId"]
    there = fsx.create_file_system(FileSystemType="LUSTRE", StorageCapacity=1200, SubnetIds=[subnet],
                                   LustreConfiguration={"DeploymentType": "SCRATCH_2"})["FileSystem"]["FileSystemId"]
    up("--shared", f"fsx:{there}", "--mount", "/data")
    text = script(cloud, "w0002")
    assert f"file_system={there}" in text and f"mount_name={there[-8:]}" in text and "folder=/data" in text
    assert cloud.proxy.count("CreateFileSystem") == 0
    cloud.cluster("down", "demo", "--delete-storage", "--yes")
    assert [one["FileSystemId"] for one in systems(fsx)] == [there] and cloud.sweep("demo") == []
    assert "region us-east-1 has no file system fs-0123" in up("--shared", "fsx:fs-0123", status=2).stderr


def test_the_plan_tells_its_price_and_what_images_lack(cloud):
    words = ("plan", "demo", "-w", 1, "--instance-type", "c5.large", "--shared", "fsx:4800")
    plan = cloud.json(*words)
    assert any("make an FSx for Lustre file system of 4800 GB, encrypted: $696.00 a month" in one["what"] for one in plan["actions"])
    assert any("--image amazon-linux" in note for note in plan["notes"])
    assert not any("client of Lustre" in note for note in cloud.json(*words, "--image", "amazon-linux")["notes"])
    assert cloud.proxy.mutating() == []


def test_the_template_has_it(cloud):
    printed = cloud.cluster("template", "demo", "-w", 1, "--instance-type", "c5.large", "--ami", cloud.image(), "--shared", "fsx")
    resources = json.loads(printed.stdout)["Resources"]
    assert resources["SharedFiles"]["Type"] == "AWS::FSx::FileSystem"
    pieces = resources["Head"] and resources["HeadTemplate"]["Properties"]["LaunchTemplateData"]["UserData"]["Fn::Base64"]["Fn::Join"][1]
    assert {"Ref": "SharedFiles"} in pieces and {"Fn::GetAtt": ["SharedFiles", "LustreMountName"]} in pieces
    assert "@" not in "".join(one for one in pieces if isinstance(one, str) and "@MountName" in one)


@pytest.mark.parametrize("text", ["fsx:", "fsx:1000", "fsx:-1200", "fsx:0", "fsx:many", "fsx:3600", "lustre", "efs:vol-1"])
def test_a_shared_folder_that_is_none_is_refused_before_any_call(cloud, text):
    said = cloud.cluster("up", "demo", "--instance-type", "c5.large", "--shared", text, "--yes", status=2).stderr
    assert f"--shared {text}" in said and cloud.proxy.count() == 0


def test_it_is_encrypted_with_the_user_s_key(cloud, up, fsx):
    kms = cloud.client("kms")
    key = kms.create_key()["KeyMetadata"]["Arn"]
    cloud.proxy.policy = None
    up("--shared", "fsx", "--kms-key", key)
    assert systems(fsx)[0]["KmsKeyId"] == key


def test_without_the_right_nothing_is_left_unsaid(cloud, up):
    cloud.proxy.on("CreateFileSystem", error("AccessDeniedException", "not authorized to perform: fsx:CreateFileSystem"))
    said = up("--shared", "fsx", status=4).stderr
    assert "fsx:CreateFileSystem" in said and "the same command continues" in said and cloud.of_cluster("demo") == []
