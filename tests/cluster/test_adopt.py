"""`cluster adopt`: a stack of the predecessors' templates becomes a cluster, and `down` gives it back as it was."""

import json
import subprocess

import pytest
from faults import error
from policy import policy_of
from stacks import OldStack, without_launches
from test_heal import impaired

ADOPT = ("adopt", "demo", "--stack", "old", "--no-install")
FIGHTING = {"AZRebalance", "AlarmNotification", "HealthCheck", "Launch", "ReplaceUnhealthy", "ScheduledActions", "Terminate"}
HEAL = ("watch", "demo", "--heal", "--no-head", "--once")


@pytest.fixture(scope="module")
def adopting(program, shared_proxy):
    printed = subprocess.run([program, "cluster", "iam-policy", "--json", "--adopt"], check=True, capture_output=True, text=True)
    return policy_of(printed.stdout, shared_proxy.account)


@pytest.fixture(autouse=True)
def may_adopt(cloud, adopting):
    cloud.proxy.policy = adopting


def own_group(cloud):
    return cloud.ec2.describe_security_groups(Filters=[{"Name": "tag:dtrain:cluster", "Values": ["demo"]}])["SecurityGroups"][0]


def group_tags(cloud):
    return {tag["Key"]: tag["Value"] for tag in own_group(cloud)["Tags"]}


def down(cloud, *words, **how):
    return cloud.cluster("down", "demo", "--yes", "--no-head", *words, **how)


def test_a_plan_changes_nothing(cloud):
    old = OldStack(cloud)
    before = old.state()
    for words in (("--dry-run",), ("--dry-run", "--json")):
        said = cloud.cluster(*ADOPT, *words).stdout
        assert "Launch" in said and "old-WorkerAutoScalingGroup" in said
    told = json.loads(said)
    assert told["changed"] is False and told["workers"] == 2 and told["head"] in old.machines("Master")
    assert cloud.proxy.mutating() == [] and old.state() == before


def test_nothing_is_changed_without_consent(cloud):
    old = OldStack(cloud)
    before = old.state()
    refused = cloud.cluster(*ADOPT, status=2)
    assert "--yes" in refused.stderr and "gives it back" in refused.stderr
    assert cloud.proxy.mutating() == [] and old.state() == before


def test_a_stack_becomes_a_cluster_that_the_commands_know(cloud):
    old = OldStack(cloud)
    made = cloud.json(*ADOPT, "--yes")
    assert [node["name"] for node in made["nodes"]] == ["head", "w0001", "w0002"] and made["changed"]
    assert {node["instance_id"] for node in made["nodes"]} == set(old.machines())
    assert old.suspended("Master") == old.suspended("Worker") == FIGHTING
    group = own_group(cloud)["GroupId"]
    for machine in old.machines().values():
        groups = {one["GroupId"] for one in machine["SecurityGroups"]}
        assert group in groups and len(groups) == 2
    assert group in old.state()["mount target"] and len(old.state()["mount target"]) == 2
    tags = group_tags(cloud)
    assert tags["dtrain:stack"] == "old" and json.loads(tags["dtrain:wish"]) == {"schema": "dtrain.cluster-wish/1", "base": 2, "elastic": 0}
    assert tags["dtrain:option:shared"] == "efs:" + old.physical("FileSystem") and tags["dtrain:option:key"] == "mine"
    status = cloud.json("status", "demo")
    assert [node["state"] for node in status["nodes"]] == ["running"] * 3
    assert "demo" in cloud.cluster("list").stdout and cloud.json("cost", "demo")["dollars_per_hour"] > 0
    assert cloud.cluster("health", "demo", status=3).stdout.count("well      agent unknown") == 3  # none was installed


def test_adopted_again_it_stays_as_it_is(cloud):
    old = OldStack(cloud)
    cloud.cluster(*ADOPT, "--yes")
    before, tags = old.state(), group_tags(cloud)
    cloud.cluster(*ADOPT, "--yes")
    assert old.state() == before and group_tags(cloud) == tags
    assert cloud.proxy.count("CreateLaunchTemplate") == cloud.proxy.count("CreateSecurityGroup") == 1
    down(cloud)
    assert old.suspended("Worker") == set()


@pytest.mark.parametrize("action", ["SuspendProcesses", "CreateTags", "ModifyInstanceAttribute", "CreateLaunchTemplate"])
def test_what_was_interrupted_goes_on_and_can_be_given_back(cloud, action):
    old = OldStack(cloud)
    before = old.state()
    for last in (cloud.cluster, None):
        cloud.proxy.on(action, error("UnauthorizedOperation", status=403), calls=[2 if action == "CreateTags" else 1])
        cloud.cluster(*ADOPT, "--yes", status=4)
        cloud.proxy.plans.clear()
        if last:
            last(*ADOPT, "--yes")
            assert cloud.node_names("demo") == ["head", "w0001", "w0002"]
        down(cloud)
        assert old.state() == before and cloud.sweep("demo") == []


def test_processes_that_were_suspended_before_stay_so(cloud):
    old = OldStack(cloud)
    old.scaling.suspend_processes(AutoScalingGroupName=old.physical("WorkerAutoScalingGroup"), ScalingProcesses=["AZRebalance"])
    before = old.state()
    cloud.cluster(*ADOPT, "--yes")
    assert old.suspended("Worker") == FIGHTING
    down(cloud)
    assert old.state() == before and old.suspended("Worker") == {"AZRebalance"}


def test_workers_come_and_go_and_lost_ones_are_started_again(cloud):
    old = OldStack(cloud)
    cloud.cluster(*ADOPT, "--yes")
    without_launches(cloud)
    cloud.cluster("add", "demo", 1, "--yes", "--no-wait")
    added = next(one for one in cloud.of_cluster("demo") if one["InstanceId"] not in old.machines())
    assert cloud.tags(added["InstanceId"])["dtrain:node"] == "w0003"
    assert added["SubnetId"] == old.physical("PublicSubnet") and added["KeyName"] == "mine"
    assert "\nfile_system=" + old.physical("FileSystem") in cloud.user_data(added["InstanceId"])
    cloud.cluster("remove", "demo", "w0002", "--yes", "--force")
    assert cloud.node_names("demo") == ["head", "w0001", "w0003"] and len(old.machines()) == 2
    lost = next(one["InstanceId"] for one in cloud.of_cluster("demo") if cloud.tags(one["InstanceId"])["dtrain:node"] == "w0001")
    old.scaling.detach_instances(InstanceIds=[lost], AutoScalingGroupName=old.physical("WorkerAutoScalingGroup"),
                                 ShouldDecrementDesiredCapacity=True)
    cloud.ec2.terminate_instances(InstanceIds=[lost])
    said = cloud.cluster(*HEAL).stderr
    assert "started w0001" in said and cloud.node_names("demo") == ["head", "w0001", "w0003"]


def test_no_job_may_end_the_machines_of_a_stack(cloud):
    """They would power off, and their owner did not ask for that."""
    old = OldStack(cloud)
    cloud.cluster(*ADOPT, "--yes")
    refused = cloud.run("launch", "--cluster", "demo", "--detach", "--down-when-done", "--", "true", status=2).stderr
    assert "belong to stack old" in refused and "leave --down-when-done out" in refused
    assert len(old.machines()) == 3


def test_an_impaired_machine_of_the_stack_is_not_replaced(cloud):
    old = OldStack(cloud)
    cloud.cluster(*ADOPT, "--yes")
    victim = next(one["InstanceId"] for one in cloud.of_cluster("demo") if cloud.tags(one["InstanceId"])["dtrain:node"] == "w0002")
    cloud.proxy.on("DescribeInstanceStatus", impaired(victim))
    cloud.proxy.calls.clear()
    said = cloud.cluster("health", "demo", "--replace", "--yes", "--no-head", status=20).stdout
    assert "dtrain cluster remove demo w0002 --force ends this machine of stack old" in said
    assert cloud.proxy.mutating() == [] and len(old.machines()) == len(cloud.of_cluster("demo")) == 3


def test_a_machine_of_the_elastic_template_is_a_newcomer_for_jobs(cloud):
    """What the predecessors wrote is about a job of theirs: as ADDED, the next job would take it for removed."""
    OldStack(cloud)
    tags = {"old-aws-dl-cfn-elastic-worker": "", "elastic_worker_status": "ADDED"}
    made = cloud.ec2.run_instances(ImageId=cloud.image(), InstanceType="c5.large", KeyName="mine", MinCount=1, MaxCount=1, TagSpecifications=[
        {"ResourceType": "instance", "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}])["Instances"][0]["InstanceId"]
    cloud.cluster(*ADOPT, "--yes")
    assert cloud.tags(made)["dtrain:role"] == "worker" and cloud.tags(made)["elastic_worker_status"] == ""
    cloud.ec2.create_tags(Resources=[made], Tags=[{"Key": "elastic_worker_status", "Value": "ADDED"}])
    cloud.cluster(*ADOPT, "--yes")
    assert cloud.tags(made)["elastic_worker_status"] == "ADDED"  # of a job of dtrain by now


def test_down_ends_what_dtrain_started_and_nothing_of_the_stack(cloud):
    old = OldStack(cloud)
    before = old.state()
    cloud.cluster(*ADOPT, "--yes")
    cloud.cluster("add", "demo", 2, "--yes", "--no-wait")
    assert len(cloud.of_cluster("demo")) == 5
    refused = cloud.cluster("down", "demo", "--no-head", status=2).stderr
    assert "end 2 machines: w0003" in refused and "give 3 machines back to stack old" in refused
    told = json.loads(down(cloud, "--json").stdout)
    assert told["instances"] == 2 and told["stack"] == "old" and set(told["given_back"]) == set(old.machines())
    assert told["leftover"] == [] and cloud.sweep("demo") == [] and old.state() == before
    assert len(cloud.instances()) == 3
    assert old.stacks.describe_stacks(StackName="old")["Stacks"][0]["StackStatus"] == "CREATE_COMPLETE"


def test_stopped_machines_are_not_given_back(cloud):
    """Auto Scaling groups end what does not run."""
    old = OldStack(cloud)
    before = old.state()
    cloud.cluster(*ADOPT, "--yes")
    cloud.cluster("stop", "demo", "--yes", "--no-head")
    cloud.proxy.calls.clear()
    refused = down(cloud, status=2).stderr
    assert "of stack old is stopped" in refused and "dtrain cluster start demo" in refused
    assert cloud.proxy.mutating() == [] and old.suspended("Worker") == FIGHTING
    cloud.cluster("start", "demo", "--yes", "--no-wait")
    down(cloud)
    assert old.state() == before and cloud.sweep("demo") == []


def test_a_group_that_lost_machines_starts_none_when_it_is_given_back(cloud):
    """AWS goes on to want those that `remove` ended."""
    old = OldStack(cloud)
    cloud.cluster(*ADOPT, "--yes")

    def wants_more(exchange):
        answer = exchange.forward()
        answer.body = answer.body.replace(b"<DesiredCapacity>2<", b"<DesiredCapacity>4<")
        return answer
    cloud.proxy.on("DescribeAutoScalingGroups", wants_more)
    calls = []
    cloud.proxy.after_call = lambda exchange: calls.append((exchange.action, exchange.form.get("DesiredCapacity")))
    said = down(cloud).stderr
    assert "wants 2 machines, and not 4" in said
    told = [call for call in calls if call[0] in ("UpdateAutoScalingGroup", "ResumeProcesses")]
    assert ("UpdateAutoScalingGroup", "2") in told and len(old.machines()) == 3
    assert told.index(("UpdateAutoScalingGroup", "2")) < len(told) - 1


def test_a_file_system_that_went_with_its_stack_holds_nothing_up(cloud):
    old = OldStack(cloud)
    cloud.cluster(*ADOPT, "--yes")
    system = old.physical("FileSystem")
    for target in cloud.efs.describe_mount_targets(FileSystemId=system)["MountTargets"]:
        cloud.efs.delete_mount_target(MountTargetId=target["MountTargetId"])
    cloud.efs.delete_file_system(FileSystemId=system)
    down(cloud)
    assert cloud.sweep("demo") == []


def test_what_cannot_be_given_back_is_said_and_kept_for_later(cloud):
    old = OldStack(cloud)
    before = old.state()
    cloud.cluster(*ADOPT, "--yes")
    cloud.cluster("add", "demo", 1, "--yes", "--no-wait")
    cloud.proxy.on("ResumeProcesses", error("AccessDenied", status=403))
    refused = down(cloud, status=3)
    assert "left: Auto Scaling groups" in refused.stdout and "cluster demo is gone" not in refused.stdout
    assert group_tags(cloud)["dtrain:stack"] == "old" and len(cloud.instances()) == 4
    cloud.proxy.plans.clear()
    down(cloud)
    assert old.state() == before and cloud.sweep("demo") == []


def test_gpus_that_cannot_train_are_told(cloud):
    OldStack(cloud, kind="g4dn.xlarge")
    said = cloud.cluster(*ADOPT, "--dry-run").stderr
    assert "dtrain cannot train on the GPU of g4dn.xlarge, a T4" in said
    cloud.cluster(*ADOPT, "--yes")
    assert cloud.node_names("demo") == ["head", "w0001", "w0002"]


def in_progress(exchange):
    answer = exchange.forward()
    answer.body = answer.body.replace(b"CREATE_COMPLETE", b"UPDATE_IN_PROGRESS")
    return answer


def test_a_stack_that_changes_at_the_moment_is_refused(cloud):
    OldStack(cloud)
    cloud.proxy.on("DescribeStacks", in_progress)
    said = cloud.cluster(*ADOPT, "--yes", status=2).stderr
    assert "stack old is UPDATE_IN_PROGRESS" in said and "wait" in said and cloud.proxy.mutating() == []


@pytest.mark.parametrize(("how", "said"), [
    ({"key": ""}, "without a key pair"), ({"groups": False}, "has no Auto Scaling group"),
    ({"masters": 0}, "has no master"), ({"masters": 2}, "has 2 masters"), ({"kind": "m6g.large"}, "of architecture arm64")])
def test_what_is_no_such_cluster_is_refused(cloud, how, said):
    OldStack(cloud, **how)
    refused = cloud.cluster(*ADOPT, "--yes", status=2).stderr
    assert said in refused and cloud.proxy.mutating() == []


def test_a_stack_that_is_not_there_is_refused(cloud):
    assert "there is no stack old in us-east-1" in cloud.cluster(*ADOPT, "--yes", status=2).stderr


def test_another_cluster_s_name_or_machine_is_refused(cloud, up):
    up()
    old = OldStack(cloud)
    cloud.proxy.calls.clear()
    assert "cluster demo exists, and is not stack old" in cloud.cluster(*ADOPT, "--yes", status=2).stderr
    cloud.ec2.create_tags(Resources=[min(old.machines())], Tags=[{"Key": "dtrain:cluster", "Value": "demo"}])
    words = ("adopt", "other", "--stack", "old", "--no-install", "--yes")
    assert "belongs to cluster demo" in cloud.cluster(*words, status=2).stderr and cloud.proxy.mutating() == []


def test_a_user_without_these_rights_is_told_which(cloud, policy):
    OldStack(cloud)
    cloud.proxy.policy = policy
    refused = cloud.cluster(*ADOPT, "--yes", status=4).stderr
    assert "DescribeStacks" in refused
    cloud.proxy.denied.clear()
