"""The CloudFormation template of a cluster."""

import json
import subprocess


def template_of(cloud, *words, status=0):
    printed = cloud.cluster("template", "demo", "--instance-type", "c5.large", "--ami", cloud.image(), *words, status=status)
    return printed if status else json.loads(printed.stdout)["Resources"]


def launch_data(resources, name="WorkerTemplate"):
    return resources[name]["Properties"]["LaunchTemplateData"]


def make_stack(cloud, resources):
    stacks = cloud.client("cloudformation")
    stacks.create_stack(StackName="demo", TemplateBody=json.dumps({"Resources": resources}))
    assert stacks.describe_stacks(StackName="demo")["Stacks"][0]["StackStatus"] == "CREATE_COMPLETE"


def test_the_template_makes_the_same_machines(cloud):
    resources = template_of(cloud, "-w", 2, "--shared", "efs")
    assert cloud.proxy.mutating() == []
    make_stack(cloud, resources)
    assert [node["name"] for node in cloud.json("status", "demo")["nodes"]] == ["head", "w0001", "w0002"]
    assert len(cloud.efs.describe_file_systems()["FileSystems"]) == 1


def test_add_and_down_know_the_cluster_of_a_stack(cloud):
    make_stack(cloud, template_of(cloud, "-w", 1))
    assert [one["name"] for one in cloud.json("add", "demo", 1, "--yes", "--no-wait")["nodes"]] == ["w0002"]
    added = next(one for one in cloud.of_cluster("demo") if cloud.tags(one["InstanceId"])["dtrain:node"] == "w0002")
    tags = cloud.tags(added["InstanceId"])
    assert tags["dtrain:role"] == "worker" and "demo-aws-dl-cfn-elastic-worker" in tags
    assert cloud.json("status", "demo")["options"]["instance-type"] == "c5.large"
    cloud.cluster("down", "demo", "--yes")
    assert cloud.of_cluster("demo") == []


def test_disks_carry_the_tag_that_rights_are_narrowed_to(cloud):
    resources = template_of(cloud, "-w", 1)
    for name in ("HeadTemplate", "WorkerTemplate"):
        tags = {one["ResourceType"]: one["Tags"] for one in launch_data(resources, name)["TagSpecifications"]}
        assert {"Key": "dtrain:cluster", "Value": "demo"} in tags["volume"] and {"Key": "dtrain:cluster", "Value": "demo"} in tags["instance"]


def test_private_spot_and_efa_are_in_the_template(cloud):
    resources = template_of(cloud, "--private", "--spot", "only", "--max-price", 1.5, "--instance-type", "c5n.18xlarge", "--efa")
    for name in ("HeadTemplate", "WorkerTemplate"):
        data = launch_data(resources, name)
        interface = data["NetworkInterfaces"][0]
        assert interface["AssociatePublicIpAddress"] is False and interface["InterfaceType"] == "efa"
        assert interface["SubnetId"] and "SecurityGroupIds" not in data
        assert data["InstanceMarketOptions"] == {"MarketType": "spot", "SpotOptions": {"MaxPrice": "1.5"}}
    assert "SubnetId" not in resources["Head"]["Properties"]


def test_what_a_template_cannot_say_is_refused_by_name(cloud):
    assert "--spot prefer" in template_of(cloud, "--spot", "prefer", status=2).stderr
    assert "--min-workers" in template_of(cloud, "-w", 2, "--min-workers", 1, status=2).stderr


def test_the_template_makes_the_key_that_it_names(cloud):
    folder = cloud.folder / "home" / ".ssh"
    folder.mkdir()
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "id_ed25519"], check=True)
    resources = template_of(cloud)
    assert launch_data(resources)["KeyName"] == {"Ref": "Key"}
    made = resources["Key"]["Properties"]
    assert made["KeyName"] == "dtrain-demo"
    assert made["PublicKeyMaterial"] == (folder / "id_ed25519.pub").read_text().strip()


def test_a_given_file_system_gets_a_mount_target(cloud):
    given = cloud.efs.create_file_system(CreationToken="theirs")["FileSystemId"]
    target = template_of(cloud, "--shared", f"efs:{given}")["SharedFilesAddress"]
    assert target["Type"] == "AWS::EFS::MountTarget" and target["Properties"]["FileSystemId"] == given


def test_limits_of_cloudformation_are_named_with_numbers(cloud):
    words = ("--instance-type", "c5.large", "--ami", cloud.image())
    long = cloud.cluster("template", "demo", "-w", 200, *words)
    assert "51200" in long.stderr and "S3" in long.stderr and len(json.loads(long.stdout)["Resources"]) > 200
    refused = template_of(cloud, "-w", 600, status=2).stderr
    assert "605 resources" in refused and "takes 500" in refused
