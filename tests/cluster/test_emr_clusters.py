"""Clusters that `cluster up --on emr` makes. moto's EMR runs nothing: its clusters accept steps at once, and its
groups change their sizes, not their instances."""

import json
import signal
import threading
import time

import pytest
from faults import delay, error, lose_reply, lose_request

EMR = ("--on", "emr", "--release", "emr-7.1.0", "--root-gb", 60, "--instance-type", "c5.large", "--yes")


@pytest.fixture
def emr(cloud):
    return cloud.client("emr")


@pytest.fixture
def up(cloud):
    def run(*words, count=2, status=0):
        return cloud.cluster("up", "demo", "-w", count, *EMR, *words, status=status)
    return run


def there(emr):
    """Clusters that have not ended, as DescribeCluster has them."""
    listed = emr.list_clusters(ClusterStates=["STARTING", "RUNNING", "WAITING"])["Clusters"]
    return [emr.describe_cluster(ClusterId=one["Id"])["Cluster"] for one in listed]


def order(cloud):
    return next(call.json() for call in cloud.proxy.calls if call.action == "RunJobFlow")


def workers_wanted(emr, identity):
    groups = emr.list_instance_groups(ClusterId=identity)["InstanceGroups"]
    return next(group["RequestedInstanceCount"] for group in groups if group["InstanceGroupType"] == "CORE")


def test_up_on_emr_makes_what_was_asked_for(cloud, emr, up):
    image = cloud.ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
    other = cloud.ec2.create_security_group(GroupName="efs", Description="theirs")["GroupId"]
    system = cloud.efs.create_file_system(CreationToken="theirs")["FileSystemId"]
    cloud.ec2.create_key_pair(KeyName="mine")
    up("--ami", image, "--security-group", other, "--shared", f"efs:{system}", "--mount", "/efs", "--key", "mine",
       "--log-uri", "s3://theirs/logs", "--service-role", "R", "--instance-profile", "P")
    made, asked = there(emr)[0], order(cloud)
    assert (made["Name"], made["ReleaseLabel"], made["LogUri"]) == ("demo", "emr-7.1.0", "s3://theirs/logs")
    assert (made["CustomAmiId"], made["EbsRootVolumeSize"], made["ServiceRole"]) == (image, 60, "R")
    assert {"Key": "dtrain:cluster", "Value": "demo"} in made["Tags"] and asked["JobFlowRole"] == "P"
    attributes = made["Ec2InstanceAttributes"]
    assert attributes["Ec2KeyName"] == "mine" and attributes["Ec2SubnetId"].startswith("subnet-")
    own = next(group for group in cloud.ec2.describe_security_groups()["SecurityGroups"]
               if {"Key": "dtrain:cluster", "Value": "demo"} in group.get("Tags", []))["GroupId"]
    for kind in ("AdditionalMasterSecurityGroups", "AdditionalSlaveSecurityGroups"):
        assert asked["Instances"][kind] == [own, other]
    script = asked["BootstrapActions"][0]["ScriptBootstrapAction"]["Args"][1]
    assert f"{system}.efs.us-east-1.amazonaws.com:/ /efs" in script


def test_up_on_emr_chooses_the_disk_that_is_not_given(cloud, emr):
    words = [word for word in EMR if word not in ("--root-gb", 60)]
    for _ in range(2):
        cloud.cluster("up", "demo", "-w", 1, *words)
    assert [made["EbsRootVolumeSize"] for made in there(emr)] == [50]


def test_status_shows_an_emr_cluster(cloud, emr, up):
    up()
    told = cloud.json("status", "demo")
    assert told["emr"] == there(emr)[0]["Id"] and told["emr_state"] == "WAITING"
    assert [node["role"] for node in told["nodes"]] == ["head", "worker", "worker"]
    assert told["dollars_per_hour"] == pytest.approx(3 * 0.085)


def test_up_on_emr_happens_once(cloud, emr, up):
    up()
    before = cloud.proxy.mutating()
    assert "up to date" in up().stdout
    assert cloud.proxy.mutating() == before and len(there(emr)) == 1


def test_what_can_change_on_emr(cloud, emr, up):
    up("--ssh-from", "203.0.113.7/32")
    up("--ssh-from", "203.0.113.8/32")
    rules = [group for group in cloud.ec2.describe_security_groups()["SecurityGroups"] if group["GroupName"] == "dtrain-demo"]
    ranges = [one["CidrIp"] for rule in rules[0]["IpPermissions"] for one in rule["IpRanges"]]
    assert ranges == ["203.0.113.8/32"] and len(there(emr)) == 1
    assert "cluster add demo" in up(count=4, status=2).stderr
    assert "--root-gb" in up("--root-gb", 70, status=2).stderr


def test_other_verbs_know_that_it_is_emr(cloud, emr, up):
    up()
    assert f"cluster env --emr {there(emr)[0]['Id']}" in cloud.cluster("env", "demo", status=2).stderr
    assert "emr" in cloud.cluster("template", "other", "-w", 1, *EMR[:-1], status=2).stderr


def test_a_lost_answer_makes_no_second_emr_cluster(cloud, emr, up):
    cloud.proxy.on("RunJobFlow", lose_reply(), calls=[1])
    up()
    assert len(there(emr)) == 1 and cloud.proxy.count("RunJobFlow") == 1


def test_two_ups_on_emr_at_once_make_one_emr_cluster(cloud, emr):
    both = threading.Barrier(2)

    def together(exchange):
        if exchange.action == "CreateSecurityGroup":
            both.wait(60)
    cloud.proxy.before_call = together
    running = [cloud.start("cluster", "up", "demo", "-w", 2, *EMR) for _ in range(2)]
    said = [process.communicate(timeout=120) for process in running]
    assert [process.returncode for process in running] == [0, 0], said
    assert cloud.proxy.count("RunJobFlow") == 1 and len(there(emr)) == 1


def test_two_ups_on_emr_at_once_after_the_end_of_the_first_cluster(cloud, emr, up):
    """The group is there, so that the making of it decides nothing: the lease on it does."""
    up()
    emr.terminate_job_flows(JobFlowIds=[there(emr)[0]["Id"]])
    both = threading.Barrier(2)

    def together(exchange):
        if exchange.action == "RunJobFlow":
            try:
                both.wait(10)
            except threading.BrokenBarrierError:
                pass
    cloud.proxy.before_call = together
    running = [cloud.start("cluster", "up", "demo", "-w", 2, *EMR) for _ in range(2)]
    said = [process.communicate(timeout=120) for process in running]
    assert [process.returncode for process in running] == [0, 0], said
    assert cloud.proxy.count("RunJobFlow") == 2 and len(there(emr)) == 1


def test_down_ends_all_emr_clusters_of_the_cluster(cloud, emr, up):
    up()
    asked = order(cloud)
    emr.run_job_flow(**{name: asked[name] for name in ("Name", "ReleaseLabel", "ServiceRole", "JobFlowRole", "Instances", "Tags")})
    assert len(there(emr)) == 2
    cloud.cluster("down", "demo", "--yes")
    assert there(emr) == [] and cloud.sweep("demo") == []


def test_up_on_emr_goes_on_after_a_failure(cloud, emr, up):
    cloud.proxy.on("RunJobFlow", error("ValidationException"), calls=[1])
    up(status=None)
    assert there(emr) == []
    up()
    assert len(there(emr)) == 1 and workers_wanted(emr, there(emr)[0]["Id"]) == 2


@pytest.mark.parametrize("words", [("--release", "emr-6.15.0"), ("--release", "7.1.0"), ("--root-gb", 49),
                                   ("--image", "amazon-linux"), ("--shared", "efs"), ("--spot", "prefer"), ("-w", 0)])
def test_what_emr_cannot_be_is_refused(cloud, words):
    given = {"-w": 1, "--on": "emr", "--release": "emr-7.1.0", "--root-gb": 60, "--instance-type": "c5.large"}
    given.update([words])
    told = cloud.cluster("up", "demo", "--yes", *(word for pair in given.items() for word in pair), status=2)
    assert words[0].replace("-w", "worker") in told.stderr and cloud.proxy.mutating() == []


@pytest.mark.parametrize("word,instead", [("--private", "--subnet"), ("--keep-failed", "--log-uri")])
def test_what_emr_decides_by_itself_is_refused(cloud, up, word, instead):
    told = up(word, status=2).stderr
    assert f"{word} is not for EMR" in told and instead in told and cloud.proxy.mutating() == []


def with_a_timeline(exchange):
    answer = exchange.forward()
    document = json.loads(answer.body)
    for one in document["Instances"]:
        one["Status"]["Timeline"] = {"CreationDateTime": time.time() - 7200}
    answer.body = json.dumps(document).encode()
    return answer


def test_cost_says_that_it_is_emr(cloud, emr, up):
    up()
    cloud.proxy.on("ListInstances", with_a_timeline)
    cost = cloud.json("cost", "demo")
    assert cost["emr"] == there(emr)[0]["Id"] and cost["without_price_of_emr"] is True
    assert cost["dollars_so_far"] == pytest.approx(3 * 2 * 0.085, rel=0.1)
    said = cloud.cluster("cost", "demo").stdout
    assert f"EMR cluster {cost['emr']} (WAITING)" in said and "EMR charges an extra fee" in said
    assert cloud.json("status", "demo")["nodes"][0]["agent"] == "none"
    assert cloud.json("health", "demo", status=None)["nodes"][0]["agent_why"] == "Amazon EMR runs it"


def test_add_and_remove_resize_the_group(cloud, emr, up):
    up()
    identity = there(emr)[0]["Id"]
    cloud.cluster("add", "demo", 3, "--yes")
    assert workers_wanted(emr, identity) == 5
    victim = cloud.json("status", "demo")["nodes"][1]["instance_id"]
    assert "let EMR end" in cloud.cluster("remove", "demo", victim, status=2).stderr
    assert "EMR ends it when" in cloud.cluster("remove", "demo", victim, "--yes").stdout
    assert workers_wanted(emr, identity) == 4
    last = [call.json() for call in cloud.proxy.calls if call.action == "ModifyInstanceGroups"][-1]
    assert last["InstanceGroups"][0]["ShrinkPolicy"] == {"InstanceResizePolicy": {"InstancesToTerminate": [victim]}}
    assert "cluster down" in cloud.cluster("remove", "demo", "head", "--yes", "--force", status=2).stderr


def test_an_add_that_is_stopped_does_not_ask_for_twice_as_many(cloud, emr, up):
    up()
    running = []

    def stop(exchange):
        if exchange.action == "ModifyInstanceGroups":
            running[0].send_signal(signal.SIGINT)
    cloud.proxy.before_call = stop
    cloud.proxy.on("ModifyInstanceGroups", delay(5))
    running.append(cloud.start("cluster", "add", "demo", 3, "--yes"))
    said = running[0].communicate(timeout=120)[1]
    cloud.proxy.before_call = None
    assert "dtrain cluster status demo shows whether the group has grown; run the same command again only if it has not" in said


def test_logs_name_the_place_in_s3(cloud, emr, up):
    up("--log-uri", "s3://theirs/logs/")
    head = cloud.json("status", "demo")["nodes"][0]["instance_id"]
    assert cloud.cluster("logs", "demo").stdout.strip() == f"s3://theirs/logs/{there(emr)[0]['Id']}/node/{head}/"


def test_down_ends_the_emr_cluster_and_no_other(cloud, emr, up):
    theirs = emr.run_job_flow(Name="demo", ReleaseLabel="emr-7.1.0", ServiceRole="R", JobFlowRole="P",
                              Instances={"KeepJobFlowAliveWhenNoSteps": True, "InstanceGroups": [
                                  {"InstanceRole": "MASTER", "InstanceType": "c5.large", "InstanceCount": 1}]})["JobFlowId"]
    up()
    cloud.proxy.on("TerminateJobFlows", lose_request(), calls=[1])
    cloud.cluster("down", "demo", "--yes")
    assert [one["Id"] for one in there(emr)] == [theirs]
    assert cloud.sweep("demo") == [] and cloud.json("status", "demo")["exists"] is False
    cloud.cluster("down", "demo", "--yes")
