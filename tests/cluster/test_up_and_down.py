"""A cluster from `plan` to `down`: requirements 1 to 3, 6, 7, 20 and 22."""

import base64
import json
import subprocess
import threading
import time

import pytest
from cloud import UP
from faults import error


def ids(cloud, name="demo"):
    return sorted(instance["InstanceId"] for instance in cloud.of_cluster(name))


def test_r01_a_plan_changes_nothing_and_tells_what_and_what_it_costs(cloud):
    words = ("demo", "-w", 2, "--instance-type", "c5.large", "--ami", cloud.image())
    plan = cloud.json("plan", *words)
    assert cloud.proxy.mutating() == []
    assert [action["step"] for action in plan["actions"]] == [
        "security-group", "ssh-rule", "own-rules", "head", "launch-template", "workers"]
    assert plan["instances"] == 3 and plan["image"] == cloud.image() and plan["zones"][0] == "us-east-1a"
    assert plan["dollars_per_hour"] == pytest.approx(3 * 0.085)
    assert cloud.json("up", *words, "--dry-run") == plan
    assert cloud.proxy.mutating() == []


def test_r02_the_footprint_is_minimal(cloud, demo):
    demo()
    tagged = cloud.ec2.describe_tags(Filters=[{"Name": "key", "Values": ["dtrain:cluster"]}])["Tags"]
    kinds = sorted(tag["ResourceType"] for tag in tagged if tag["ResourceType"] != "volume")
    assert kinds == ["instance"] * 3 + ["launch-template", "security-group"], kinds
    iam = cloud.client("iam")
    assert iam.list_roles()["Roles"] == []
    assert cloud.node_names("demo") == ["head", "w0001", "w0002"]


def test_r03_up_again_changes_nothing(cloud, demo):
    demo()
    before = ids(cloud)
    cloud.proxy.calls.clear()
    again = cloud.json("up", "demo", *UP)
    assert again["changed"] is False
    assert ids(cloud) == before and cloud.proxy.mutating() == []


def test_r03_two_at_once_make_one_cluster(cloud, demo):
    threads = [threading.Thread(target=demo) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cloud.node_names("demo") == ["head", "w0001", "w0002"]
    assert demo()["changed"] is False


def test_r03_other_options_are_refused_but_those_that_can_change(cloud, demo):
    demo()
    refused = cloud.cluster("up", "demo", "--shared", "efs", *UP, status=2)
    assert "--shared" in refused.stderr
    assert len(cloud.json("up", "demo", "-w", 3, *UP)["nodes"]) == 4
    assert cloud.node_names("demo") == ["head", "w0001", "w0002", "w0003"]


def test_r06_down_leaves_nothing_and_may_be_run_again(cloud, demo):
    demo()
    cloud.cluster("add", "demo", 2, "--yes", "--no-wait")
    down = cloud.json("down", "demo", "--yes")
    assert down["instances"] == 5 and down["leftover"] == []
    assert cloud.sweep("demo") == []
    assert cloud.json("down", "demo", "--yes")["removed"] == []
    assert cloud.json("down", "never-there", "--yes")["instances"] == 0


def test_r06_down_waits_until_instances_are_gone(cloud, demo):
    cloud.proxy.strict.polls = 2
    demo()
    cloud.cluster("down", "demo", "--yes")
    assert cloud.sweep("demo") == []
    assert cloud.proxy.count("DeleteSecurityGroup") == 1


def test_r06_what_down_cannot_remove_is_listed(cloud, demo):
    demo()
    cloud.proxy.on("DeleteSecurityGroup", error("UnauthorizedOperation", "not you", 403))
    down = cloud.json("down", "demo", "--yes", status=3)
    assert [left["kind"] for left in down["leftover"]] == ["security group"]
    assert "UnauthorizedOperation" in down["leftover"][0]["why"]


def test_r06_machines_that_these_keys_may_not_end_are_listed(cloud, demo):
    demo()
    there = ids(cloud)
    cloud.proxy.on("TerminateInstances", error("UnauthorizedOperation", "not you", 403), calls=[1])
    down = cloud.json("down", "demo", "--yes", status=3)
    left = [one for one in down["leftover"] if one["kind"] == "instance"]
    assert sorted(one["id"] for one in left) == there == ids(cloud) and down["instances"] == 0
    assert all("UnauthorizedOperation" in one["why"] for one in left)
    assert cloud.json("down", "demo", "--yes")["instances"] == 3 and cloud.sweep("demo") == []


def test_r06_down_says_that_an_up_is_at_work_and_the_up_what_is_there(cloud):
    said = []

    def end_it(exchange):
        if exchange.action == "CreateLaunchTemplate":
            cloud.proxy.before_call = None
            said.append(cloud.cluster("down", "demo", "--yes").stderr)
    cloud.proxy.before_call = end_it
    cloud.proxy.on("CreateLaunchTemplate", error("UnauthorizedOperation", "no", 403))
    refused = cloud.cluster("up", "demo", "-w", 2, "--ami", cloud.image(), *UP, status=4).stderr
    assert "another `up` is at work on cluster demo" in said[0]
    assert "has ended meanwhile" in refused and "keeps running" not in refused, refused
    assert ids(cloud) == []
    # The `up` gives its lease back on a group that is gone.
    assert {one.split()[0] for one in cloud.proxy.denied} <= {"ec2:CreateTags"}
    cloud.proxy.denied.clear()


def test_r07_look_alikes_stay_as_they_are(cloud, demo):
    vpc = cloud.ec2.describe_vpcs()["Vpcs"][0]["VpcId"]
    group = cloud.ec2.create_security_group(GroupName="dtrain-demo", Description="not ours", VpcId=vpc)["GroupId"]
    cloud.ec2.create_launch_template(LaunchTemplateName="dtrain-demo", LaunchTemplateData={"InstanceType": "t3.micro"})
    theirs = cloud.ec2.run_instances(
        ImageId=cloud.image(), MinCount=2, MaxCount=2, InstanceType="t3.micro", SecurityGroupIds=[group],
        TagSpecifications=[{"ResourceType": "instance", "Tags": [{"Key": "Name", "Value": "dtrain-demo-head"},
                                                                 {"Key": "dtrain:cluster", "Value": "demo2"}]}])
    theirs = [instance["InstanceId"] for instance in theirs["Instances"]]

    def seen():
        return json.dumps([cloud.ec2.describe_instances(InstanceIds=theirs)["Reservations"],
                           cloud.ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"],
                           cloud.ec2.describe_launch_templates(LaunchTemplateNames=["dtrain-demo"])["LaunchTemplates"]],
                          default=str)
    before = seen()
    demo()
    cloud.cluster("add", "demo", 1, "--yes", "--no-wait")
    cloud.cluster("remove", "demo", "w0003", "--yes", "--no-wait")
    cloud.cluster("down", "demo", "--yes")
    assert seen() == before
    assert cloud.sweep("demo") == []


def test_r20_nodes_are_hardened(cloud, demo):
    demo()
    template = cloud.ec2.describe_launch_templates()["LaunchTemplates"][0]["LaunchTemplateId"]
    data = cloud.ec2.describe_launch_template_versions(
        LaunchTemplateId=template, Versions=["$Latest"])["LaunchTemplateVersions"][0]["LaunchTemplateData"]
    run = next(call.form for call in cloud.proxy.calls if call.action == "RunInstances")
    assert data["MetadataOptions"]["HttpTokens"] == "required" == run["MetadataOptions.HttpTokens"]
    assert data["MetadataOptions"]["InstanceMetadataTags"] == "enabled" == run["MetadataOptions.InstanceMetadataTags"]
    # Answers of the metadata service, such as the user data, do not reach a container behind a bridge.
    assert str(data["MetadataOptions"]["HttpPutResponseHopLimit"]) == "1" == run["MetadataOptions.HttpPutResponseHopLimit"]
    assert data["InstanceInitiatedShutdownBehavior"] == "terminate" == run["InstanceInitiatedShutdownBehavior"]
    disk = data["BlockDeviceMappings"][0]["Ebs"]
    assert disk["Encrypted"] and disk["DeleteOnTermination"]
    assert run["BlockDeviceMapping.1.Ebs.Encrypted"] == run["BlockDeviceMapping.1.Ebs.DeleteOnTermination"] == "true"
    groups = cloud.ec2.describe_security_groups(Filters=[{"Name": "tag:dtrain:cluster", "Values": ["demo"]}])
    group = groups["SecurityGroups"][0]
    rules = [(rule["IpProtocol"], rule.get("FromPort"), [source["CidrIp"] for source in rule["IpRanges"]],
              [pair["GroupId"] for pair in rule["UserIdGroupPairs"]]) for rule in group["IpPermissions"]]
    assert sorted(rules) == [("-1", None, [], [group["GroupId"]]), ("tcp", 22, ["127.0.0.1/32"], [])]


def test_all_machines_of_a_cluster_have_its_admission_secret(cloud, demo):
    """Also a new head, and those of a second `up`; another cluster has another one. dtrain prints it nowhere."""
    def secret_of(name):
        groups = cloud.ec2.describe_security_groups(Filters=[{"Name": "tag:dtrain:cluster", "Values": [name]}])
        return {tag["Key"]: tag["Value"] for tag in groups["SecurityGroups"][0]["Tags"]}["dtrain:admission"]

    def known_to(instance):
        order = next(line for line in cloud.user_data(instance).splitlines() if line.startswith("node_json="))
        return json.loads(order.partition("=")[2].strip("'"))["admission"]
    demo()
    secret = secret_of("demo")
    assert len(secret) == 64 and {known_to(instance) for instance in ids(cloud)} == {secret}
    head = next(node for node in cloud.json("status", "demo")["nodes"] if node["name"] == "head")
    cloud.ec2.terminate_instances(InstanceIds=[head["instance_id"]])
    cloud.proxy.on("RunInstances", lambda exchange: exchange.set_form(PrivateIpAddress=None))
    demo()
    new = next(node for node in cloud.json("status", "demo")["nodes"] if node["name"] == "head")
    assert known_to(new["instance_id"]) == secret == secret_of("demo")
    said = cloud.cluster("up", "other", "-w", 1, "--ami", cloud.image(), *UP, "--verbose")
    other = secret_of("other")
    assert other != secret and other not in said.stdout + said.stderr
    said = cloud.cluster("status", "other", "--verbose")
    assert other not in said.stdout + said.stderr


def test_r20_the_ssh_rule_follows_ssh_from(cloud, demo):
    demo()
    cloud.cluster("up", "demo", "--ssh-from", "203.0.113.0/24", *UP)
    group = cloud.ec2.describe_security_groups(
        Filters=[{"Name": "tag:dtrain:cluster", "Values": ["demo"]}])["SecurityGroups"][0]
    sources = [source["CidrIp"] for rule in group["IpPermissions"] for source in rule["IpRanges"]]
    assert sources == ["203.0.113.0/24"]


def ssh_rules(cloud):
    """[(first port, last port, source)]"""
    group = cloud.ec2.describe_security_groups(Filters=[{"Name": "tag:dtrain:cluster", "Values": ["demo"]}])["SecurityGroups"][0]
    return sorted((rule["FromPort"], rule["ToPort"], source["CidrIp"]) for rule in group["IpPermissions"] for source in rule["IpRanges"])


def open_port(cloud, last, source):
    """As a colleague does in the console."""
    group = cloud.ec2.describe_security_groups(Filters=[{"Name": "tag:dtrain:cluster", "Values": ["demo"]}])["SecurityGroups"][0]
    cloud.ec2.authorize_security_group_ingress(GroupId=group["GroupId"], IpPermissions=[
        {"IpProtocol": "tcp", "FromPort": 22, "ToPort": last, "IpRanges": [{"CidrIp": source}]}])


def test_r20_rules_that_others_made_stay(cloud, demo):
    demo()
    open_port(cloud, 8888, "198.51.100.0/24")
    open_port(cloud, 22, "192.0.2.0/24")
    assert demo()["changed"] is False
    moved = cloud.json("plan", "demo", "--ssh-from", "203.0.113.0/24", "--instance-type", "c5.large")
    assert [one["what"] for one in moved["actions"] if one["step"] == "ssh-rule"] == [
        "open port 22 to 203.0.113.0/24, and close it to 127.0.0.1/32"]
    assert "port 22 is also open to 192.0.2.0/24, which dtrain leaves" in moved["notes"]
    cloud.cluster("up", "demo", "--ssh-from", "203.0.113.0/24", *UP)
    assert ssh_rules(cloud) == [(22, 22, "192.0.2.0/24"), (22, 22, "203.0.113.0/24"), (22, 8888, "198.51.100.0/24")]


def test_r20_a_rule_of_an_earlier_version_is_closed_also_after_a_failure(cloud, demo):
    """Its rule has no description, and its group no tag that tells of descriptions."""
    demo()
    group = cloud.ec2.describe_security_groups(Filters=[{"Name": "tag:dtrain:cluster", "Values": ["demo"]}])["SecurityGroups"][0]
    cloud.ec2.revoke_security_group_ingress(GroupId=group["GroupId"], IpPermissions=[
        rule for rule in group["IpPermissions"] if rule.get("FromPort") == 22])
    cloud.ec2.delete_tags(Resources=[group["GroupId"]], Tags=[{"Key": "dtrain:rules"}])
    open_port(cloud, 22, "127.0.0.1/32")
    moves = ("up", "demo", "--ssh-from", "203.0.113.0/24", *UP)
    cloud.proxy.on("RevokeSecurityGroupIngress", error("UnauthorizedOperation", status=403), calls=[1])
    cloud.cluster(*moves, status=4)
    cloud.cluster(*moves)
    assert ssh_rules(cloud) == [(22, 22, "203.0.113.0/24")]


def test_r06_a_placement_group_of_an_up_that_failed_early_goes(cloud, demo):
    """There is no security group, whose tags would tell of it."""
    cloud.proxy.on("CreateSecurityGroup", error("UnauthorizedOperation", status=403), calls=[1])
    cloud.cluster("up", "demo", "-w", 1, "--ami", cloud.image(), "--placement", *UP, status=4)
    assert list(cloud.proxy.strict.groups) == ["dtrain-demo"]
    cloud.cluster("down", "demo", "--yes")
    assert cloud.proxy.strict.groups == {}
    cloud.proxy.on("DescribePlacementGroups", error("UnauthorizedOperation", status=403))
    assert "there is no cluster demo" in cloud.cluster("down", "demo", "--yes").stdout


@pytest.mark.parametrize("words", [("--shared", "efs"), ("--elastic-role", "own")])
def test_a_tag_that_not_all_services_take_is_refused_before_anything_is_made(cloud, words):
    refused = cloud.cluster("up", "demo", "-w", 1, "--ami", cloud.image(), "--tag", "team=R&D", *words, *UP, status=2).stderr
    assert "'team=R&D' is no tag for" in refused and cloud.proxy.mutating() == []


def test_r22_an_own_file_system_is_made_once_kept_and_deleted_when_asked(cloud, demo):
    demo("--shared", "efs")
    systems = cloud.efs.describe_file_systems()["FileSystems"]
    assert len(systems) == 1 and systems[0]["Encrypted"]
    targets = cloud.efs.describe_mount_targets(FileSystemId=systems[0]["FileSystemId"])["MountTargets"]
    assert [target["AvailabilityZoneName"] for target in targets] == ["us-east-1a"]
    workers = [one["InstanceId"] for one in cloud.of_cluster("demo") if cloud.tags(one["InstanceId"])["dtrain:role"] == "worker"]
    assert all(f"mount_target={targets[0]['IpAddress']}\n" in cloud.user_data(one) for one in workers)
    assert demo("--shared", "efs")["changed"] is False
    kept = cloud.json("down", "demo", "--yes")["kept"]
    assert [one["file_system"] for one in kept] == [systems[0]["FileSystemId"]]
    demo("--shared", "efs")
    assert [one["FileSystemId"] for one in cloud.efs.describe_file_systems()["FileSystems"]] == [kept[0]["file_system"]]
    cloud.cluster("down", "demo", "--yes", "--delete-storage")
    assert cloud.efs.describe_file_systems()["FileSystems"] == [] and cloud.sweep("demo") == []


def test_r22_a_mount_target_that_stays_keeps_the_group_without_a_wait(cloud, demo):
    demo("--shared", "efs")
    cloud.proxy.on("DeleteMountTarget", error("AccessDeniedException", "not you", 403))
    begin = time.monotonic()
    left = cloud.json("down", "demo", "--yes", "--delete-storage", status=3)["leftover"]
    assert [one["kind"] for one in left] == ["mount target", "file system", "security group"] and "not you" in left[0]["why"]
    assert cloud.proxy.count("DeleteFileSystem") == cloud.proxy.count("DeleteSecurityGroup") == 0
    assert time.monotonic() - begin < 60  # without it, a quarter of an hour
    cloud.proxy.plans.clear()
    cloud.cluster("down", "demo", "--yes", "--delete-storage")
    assert cloud.sweep("demo") == []


def shown_as_deleting(system):
    """As EFS shows a file system for a while after its deletion. Its creation token is still taken."""
    def answer(exchange):
        found = exchange.forward()
        listed = json.loads(found.body)
        for one in listed.get("FileSystems", []):
            if one["FileSystemId"] == system:
                one["LifeCycleState"] = "deleting"
        found.body = json.dumps(listed).encode()
        return found
    return answer


def test_r22_a_file_system_that_is_being_deleted_is_not_the_cluster_s(cloud, demo):
    demo("--shared", "efs")
    first = cloud.json("down", "demo", "--yes")["kept"][0]["file_system"]
    cloud.proxy.on("DescribeFileSystems", shown_as_deleting(first))
    demo("--shared", "efs")
    second, = {one["FileSystemId"] for one in cloud.efs.describe_file_systems()["FileSystems"]} - {first}
    assert cloud.efs.describe_mount_targets(FileSystemId=first)["MountTargets"] == []
    assert len(cloud.efs.describe_mount_targets(FileSystemId=second)["MountTargets"]) == 1
    assert [one["file_system"] for one in cloud.json("down", "demo", "--yes")["kept"]] == [second]


def test_r22_a_given_file_system_is_never_deleted(cloud, demo):
    given = cloud.efs.create_file_system(CreationToken="theirs")["FileSystemId"]
    demo("--shared", f"efs:{given}")
    assert len(cloud.efs.describe_mount_targets(FileSystemId=given)["MountTargets"]) == 1
    cloud.cluster("down", "demo", "--yes", "--delete-storage")
    assert [one["FileSystemId"] for one in cloud.efs.describe_file_systems()["FileSystems"]] == [given]
    assert cloud.efs.describe_mount_targets(FileSystemId=given)["MountTargets"] == []


def test_a_lost_head_is_replaced_and_nodes_find_it(cloud, demo):
    asked = []
    cloud.proxy.on("RunInstances", lambda exchange: asked.append(exchange.form.get("PrivateIpAddress")))
    demo()
    old = next(node for node in cloud.json("status", "demo")["nodes"] if node["name"] == "head")
    cloud.ec2.terminate_instances(InstanceIds=[old["instance_id"]])
    before = ids(cloud)
    # moto never reuses an address; the request is checked below.
    cloud.proxy.on("RunInstances", lambda exchange: exchange.set_form(PrivateIpAddress=None))
    demo()
    assert cloud.node_names("demo") == ["head", "w0001", "w0002"] and set(before) < set(ids(cloud))
    new = next(node for node in cloud.json("status", "demo")["nodes"] if node["name"] == "head")
    assert asked == [None, old["private_ip"]]
    template = cloud.ec2.describe_launch_templates()["LaunchTemplates"][0]
    data = cloud.ec2.describe_launch_template_versions(
        LaunchTemplateId=template["LaunchTemplateId"], Versions=["$Default"])["LaunchTemplateVersions"][0]
    script = base64.b64decode(data["LaunchTemplateData"]["UserData"]).decode()
    assert f"head='{new['private_ip']}'" in script or f"head={new['private_ip']}" in script
    assert demo()["changed"] is False


def test_another_address_is_taken_where_the_head_s_is_not_to_be_had(cloud, demo):
    demo()
    old = next(node for node in cloud.json("status", "demo")["nodes"] if node["name"] == "head")
    cloud.ec2.terminate_instances(InstanceIds=[old["instance_id"]])
    cloud.stranger_at(old["private_ip"])
    demo()
    new = next(node for node in cloud.json("status", "demo")["nodes"] if node["name"] == "head")
    assert new["private_ip"] != old["private_ip"]
    assert demo()["changed"] is False


def test_up_waits_until_the_machines_run(cloud):
    """`up` then waits for the head, which does not exist here, until --timeout."""
    cloud.proxy.strict.polls = 3
    cloud.run("cluster", "plan", "demo", "-w", "1", "--instance-type", "c5.large", "--ami", cloud.image())
    looks = cloud.proxy.count("DescribeInstances")
    cloud.cluster("up", "demo", "-w", 1, "--ami", cloud.image(), "--instance-type", "c5.large", "--yes",
                  "--timeout", 15, status=None)
    assert cloud.proxy.count("DescribeInstances") - looks > 4


def test_networks_are_as_they_were_asked_for(cloud):
    image = cloud.image()
    cloud.cluster("up", "demo", "-w", 1, "--ami", image, "--instance-type", "c5n.18xlarge", "--efa", "--placement",
                  "--private", "--subnet", cloud.ec2.describe_subnets()["Subnets"][0]["SubnetId"], "--yes", "--no-wait")
    form = next(call.form for call in cloud.proxy.calls if call.action == "RunInstances")
    assert form["NetworkInterface.1.InterfaceType"] == "efa" and form["Placement.GroupName"] == "dtrain-demo"
    assert form["NetworkInterface.1.AssociatePublicIpAddress"] == "false"
    group = cloud.ec2.describe_security_groups(
        Filters=[{"Name": "tag:dtrain:cluster", "Values": ["demo"]}])["SecurityGroups"][0]
    own = [pair["GroupId"] for rule in group["IpPermissionsEgress"] for pair in rule["UserIdGroupPairs"]]
    assert own == [group["GroupId"]]
    cloud.cluster("down", "demo", "--yes")
    assert cloud.sweep("demo") == [] and cloud.proxy.strict.groups == {}


def test_the_person_s_own_key_is_brought_and_taken_away(cloud, demo):
    keys = cloud.folder / "home" / ".ssh"
    keys.mkdir()
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(keys / "id_ed25519")], check=True)
    demo()
    assert [pair["KeyName"] for pair in cloud.ec2.describe_key_pairs()["KeyPairs"]] == ["dtrain-demo"]
    assert {instance["KeyName"] for instance in cloud.of_cluster("demo")} == {"dtrain-demo"}
    assert demo()["changed"] is False
    cloud.cluster("down", "demo", "--yes")
    assert cloud.ec2.describe_key_pairs()["KeyPairs"] == [] and cloud.sweep("demo") == []


def test_a_key_that_is_not_there_is_refused_before_anything_is_made(cloud):
    refused = cloud.cluster("up", "demo", "-w", 1, "--ami", cloud.image(), "--key", "none-such", *UP, status=4)
    assert "none-such" in refused.stderr and cloud.proxy.mutating() == []
