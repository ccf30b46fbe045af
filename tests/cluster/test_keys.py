"""`--kms-key`: the user's own key encrypts the disks of all nodes and the file system that dtrain makes."""

import json

import pytest
from faults import error
from policy import policy_of

REPLICA = {"KeyId": "mrk-0123456789abcdef0123456789abcdef"}


@pytest.fixture
def kms(cloud):
    return cloud.client("kms")


@pytest.fixture
def key(cloud, kms):
    """The ARN of a key with alias/training, which the user's policy names."""
    arn = kms.create_key()["KeyMetadata"]["Arn"]
    kms.create_alias(AliasName="alias/training", TargetKeyId=arn)
    cloud.proxy.policy = policy_of(cloud.cluster("iam-policy", "--json", "--kms-key", arn).stdout, cloud.proxy.account)
    return arn


def disks(cloud):
    """{launch template: key of its disk}, and the keys of the disks that RunInstances named."""
    keys = {}
    for one in cloud.ec2.describe_launch_templates()["LaunchTemplates"]:
        data = cloud.ec2.describe_launch_template_versions(
            LaunchTemplateId=one["LaunchTemplateId"], Versions=["$Default"])["LaunchTemplateVersions"][0]["LaunchTemplateData"]
        ebs = data["BlockDeviceMappings"][0]["Ebs"]
        assert ebs["Encrypted"] is True
        keys[one["LaunchTemplateName"]] = ebs.get("KmsKeyId")
    runs = {call.form.get("BlockDeviceMapping.1.Ebs.KmsKeyId") for call in cloud.proxy.calls if call.action == "RunInstances"}
    return keys, runs


@pytest.mark.parametrize("named", ["alias/training", "id", "arn"])
def test_disks_and_file_system_are_encrypted_with_it(cloud, up, kms, key, named):
    word = {"id": key.rpartition("/")[2], "arn": key}.get(named, named)
    up("--kms-key", word, "--shared", "efs")
    assert disks(cloud) == ({"dtrain-demo": key}, {key})
    system = cloud.efs.describe_file_systems()["FileSystems"][0]
    assert system["Encrypted"] is True and system["KmsKeyId"] == key
    head = next(one for one in cloud.of_cluster("demo") if cloud.tags(one["InstanceId"])["dtrain:node"] == "head")
    volume = cloud.ec2.describe_volumes(VolumeIds=[head["BlockDeviceMappings"][0]["Ebs"]["VolumeId"]])["Volumes"][0]
    assert volume["Encrypted"] and volume["KmsKeyId"] == key
    assert "is up to date" in up("--kms-key", word).stdout and "is up to date" in up().stdout
    cloud.cluster("down", "demo", "--delete-storage", "--yes")
    assert cloud.sweep("demo") == []


def test_without_one_no_key_is_named_or_asked_for(cloud, up):
    up("--shared", "efs")
    assert disks(cloud) == ({"dtrain-demo": None}, {None}) and cloud.proxy.count("DescribeKey") == 0
    assert all("KmsKeyId" not in call.json() for call in cloud.proxy.calls if call.action == "CreateFileSystem")


def test_machines_that_heal_and_their_roles_use_it(cloud, up, key):
    up("--kms-key", "alias/training", "--heal", "--shared", "efs")
    assert disks(cloud)[0] == {"dtrain-demo": key, "dtrain-demo-head": key}
    iam = cloud.client("iam")
    for role in ("dtrain-demo-us-east-1", "dtrain-demo-us-east-1-w"):
        rights = iam.get_role_policy(RoleName=role, PolicyName="dtrain")["PolicyDocument"]["Statement"]
        lent = [one for one in rights if one["Action"] == "kms:CreateGrant"]
        assert lent == [{"Sid": "LendKeys", "Effect": "Allow", "Action": "kms:CreateGrant", "Resource": key,
                         "Condition": {"Bool": {"kms:GrantIsForAWSResource": "true"}}}]
    # A worker, and then the head, start again by these roles' rights and no others.
    cloud.proxy.policy = policy_of(json.dumps(iam.get_role_policy(
        RoleName="dtrain-demo-us-east-1", PolicyName="dtrain")["PolicyDocument"]), cloud.proxy.account)
    lost = next(one["InstanceId"] for one in cloud.of_cluster("demo") if cloud.tags(one["InstanceId"])["dtrain:node"] == "w0001")
    cloud.ec2.terminate_instances(InstanceIds=[lost])
    cloud.cluster("watch", "demo", "--heal", "--no-head", "--once")
    assert cloud.node_names("demo") == ["head", "w0001", "w0002"]
    assert cloud.proxy.count("DescribeKey") == 2 and cloud.proxy.denied == []


def test_added_workers_and_a_head_that_is_made_again_use_it(cloud, up, key):
    up("--kms-key", "alias/training")
    cloud.cluster("add", "demo", 1, "--yes", "--no-wait")
    head = next(one["InstanceId"] for one in cloud.of_cluster("demo") if cloud.tags(one["InstanceId"])["dtrain:node"] == "head")
    cloud.ec2.terminate_instances(InstanceIds=[head])
    cloud.proxy.calls.clear()
    cloud.cluster("watch", "demo", "--heal", "--no-head", "--once")
    assert cloud.node_names("demo") == ["head", "w0001", "w0002", "w0003"]
    assert disks(cloud) == ({"dtrain-demo": key}, {key})


def test_the_plan_and_the_template_name_it(cloud, key):
    words = ("demo", "-w", 1, "--instance-type", "c5.large", "--ami", cloud.image(), "--kms-key", "alias/training", "--shared", "efs")
    plan = cloud.json("plan", *words)
    assert plan["kms_key"] == key and any(f"encrypted with {key}" in one["what"] for one in plan["actions"])
    assert not any("AWSServiceRoleForEC2Spot" in note for note in plan["notes"])
    assert any("AWSServiceRoleForEC2Spot" in note for note in cloud.json("plan", *words, "--spot", "prefer")["notes"])
    resources = json.loads(cloud.cluster("template", *words).stdout)["Resources"]
    for name in ("HeadTemplate", "WorkerTemplate"):
        assert resources[name]["Properties"]["LaunchTemplateData"]["BlockDeviceMappings"][0]["Ebs"]["KmsKeyId"] == key
    assert resources["SharedFiles"]["Properties"]["KmsKeyId"] == key
    assert cloud.proxy.mutating() == []


def test_a_key_of_a_spec_file_counts(cloud, up, key):
    (cloud.folder / "cluster.toml").write_text('[cluster.up]\nkms-key = "alias/training"\n')
    up("--config", "cluster.toml")
    assert disks(cloud) == ({"dtrain-demo": key}, {key})


@pytest.mark.parametrize("verb", ["up", "plan", "template"])
@pytest.mark.parametrize(("text", "said"), [
    ("training", "is neither an ARN, an alias nor an id"), ("alias/", "is neither"), ("alias/a b", "is neither"),
    ("mrk-0123", "is neither"), ("1234abcd-12ab-34cd-56ef", "is neither"), ("arn:aws:kms:us-east-1:123456789012:training", "is neither"),
    ("arn:aws:iam::123456789012:role/a", "is neither"), ("alias/aws/ebs", "is a key that AWS keeps for one service")])
def test_a_text_that_is_no_key_is_refused_before_any_call(cloud, verb, text, said):
    refused = cloud.cluster(verb, "demo", "--instance-type", "c5.large", "--kms-key", text, status=2)
    assert f"--kms-key '{text}' {said}" in refused.stderr and cloud.proxy.count() == 0


@pytest.mark.parametrize("verb", ["up", "plan", "template"])
def test_a_head_is_not_replaced_sooner_than_aws_shows_its_end(cloud, verb):
    refused = cloud.cluster(verb, "demo", "--instance-type", "c5.large", "--heal", "--shared", "efs", "--replace-head-after", "1m", status=2)
    assert "--replace-head-after is shorter than 2:00" in refused.stderr and "give 2m or more, or off" in refused.stderr
    assert cloud.proxy.count() == 0


def test_a_key_that_cannot_encrypt_is_refused_before_anything_is_made(cloud, up, kms, key):
    words = ("--kms-key", "alias/training", "--shared", "efs")
    kms.disable_key(KeyId=key.rpartition("/")[2])
    said = up(*words, status=2).stderr
    assert f"KMS key alias/training ({key}) is in state Disabled" in said and "aws kms enable-key" in said
    kms.schedule_key_deletion(KeyId=key.rpartition("/")[2], PendingWindowInDays=7)
    assert "is in state PendingDeletion" in up(*words, status=2).stderr
    pair = kms.create_key(KeySpec="RSA_2048", KeyUsage="ENCRYPT_DECRYPT")["KeyMetadata"]["Arn"]
    cloud.proxy.policy = None
    assert "is of kind RSA_2048" in up("--kms-key", pair, status=2).stderr
    mac = kms.create_key(KeySpec="HMAC_256", KeyUsage="GENERATE_VERIFY_MAC")["KeyMetadata"]["Arn"]
    assert "is for GENERATE_VERIFY_MAC" in up("--kms-key", mac, status=2).stderr
    assert cloud.proxy.mutating() == []


@pytest.mark.parametrize("text", ["alias/others", REPLICA["KeyId"], "1234abcd-12ab-34cd-56ef-1234567890ab"])
def test_a_key_that_does_not_exist_is_told(cloud, up, text):
    said = up("--kms-key", text, status=2).stderr
    assert f"region us-east-1 of this account has no KMS key {text}" in said and "aws kms list-keys" in said
    assert cloud.proxy.mutating() == []


def test_a_key_of_another_region_is_refused_without_asking_it(cloud, up):
    arn = "arn:aws:kms:eu-west-1:123456789012:alias/training"
    assert f"KMS key {arn} is in eu-west-1, and the cluster in us-east-1" in up("--kms-key", arn, status=2).stderr
    assert cloud.proxy.count("DescribeKey") == 0 and cloud.proxy.mutating() == []


def test_a_key_whose_policy_says_no_is_told(cloud, up, key):
    cloud.proxy.on("DescribeKey", error("AccessDeniedException", "not authorized to perform: kms:DescribeKey"))
    said = up("--kms-key", key, status=4).stderr
    assert "kms:DescribeKey" in said and "iam-policy --kms-key ARN" in said and cloud.proxy.mutating() == []


def test_without_the_rights_of_a_key_aws_refuses_its_use(cloud, up, key):
    """The proxy asks for the rights that EBS's documents name."""
    document = json.loads(cloud.cluster("iam-policy", "--json", "--kms-key", key).stdout)
    document["Statement"] = [one for one in document["Statement"] if one["Sid"] != "LendKeys"]
    cloud.proxy.policy = policy_of(json.dumps(document), cloud.proxy.account)
    assert "kms:CreateGrant" in up("--kms-key", key, status=4).stderr
    assert cloud.proxy.denied and all(one.startswith("kms:CreateGrant") for one in cloud.proxy.denied)
    cloud.proxy.denied.clear()


def test_a_cluster_keeps_its_key(cloud, up, kms, key):
    up("--kms-key", "alias/training")
    kms.create_alias(AliasName="alias/other", TargetKeyId=key)
    said = up("--kms-key", "alias/other", status=2).stderr
    assert "exists with another --kms-key" in said
