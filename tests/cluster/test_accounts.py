"""Accounts that hold more, or allow less, than a cluster expects; and what is said of it."""

import json
import time

import pytest
from cloud import UP
from faults import Answer, error

EVERYTHING = ["head", "w0001", "w0002"]


def ids(cloud):
    return {cloud.tags(one["InstanceId"]).get("dtrain:node", "unnamed"): one["InstanceId"] for one in cloud.of_cluster("demo")}


def tagged_by_hand(cloud):
    made = cloud.ec2.run_instances(ImageId=cloud.image(), InstanceType="c5.large", MinCount=1, MaxCount=1, TagSpecifications=[
        {"ResourceType": "instance", "Tags": [{"Key": "dtrain:cluster", "Value": "demo"}]}])["Instances"][0]
    return made["InstanceId"]


# Machines that dtrain did not start.

@pytest.mark.parametrize("verb", [("add", "demo", 1), ("health", "demo", "--replace", "--no-head")])
def test_an_instance_with_the_cluster_s_tag_is_no_cluster(cloud, verb):
    identity = tagged_by_hand(cloud)
    refused = cloud.cluster(*verb, "--yes", status=None)
    assert refused.returncode in (0, 2), refused.stderr
    assert verb[0] == "health" or identity in refused.stderr and "cluster up demo" in refused.stderr
    assert [one["InstanceId"] for one in cloud.of_cluster("demo")] == [identity]


def test_down_asks_about_machines_and_storage_by_name(cloud, up):
    up("--shared", "efs")
    identity = tagged_by_hand(cloud)
    head = ids(cloud)["head"]
    system = cloud.efs.describe_file_systems()["FileSystems"][0]["FileSystemId"]
    asked = cloud.cluster("down", "demo", status=2).stderr
    assert "4 machines" in asked and f"head ({head})" in asked and f"{identity} (tagged by hand)" in asked
    assert f"keep file system {system}" in asked
    assert f"DELETE file system {system}" in cloud.cluster("down", "demo", "--delete-storage", status=2).stderr
    assert len(cloud.of_cluster("demo")) == 4
    assert identity in cloud.cluster("down", "demo", "--yes").stderr


def test_down_says_that_nothing_is_there_before_it_asks(cloud, up):
    up()
    calls = cloud.proxy.mutating()
    asked = cloud.cluster("down", "demi", status=2).stderr
    assert "there is no cluster demi in us-east-1; did you mean 'demo'?" in asked and "machines" not in asked and "--yes" in asked
    asked = cloud.cluster("down", "something-else", status=2).stderr
    assert "there is no cluster something-else in us-east-1; dtrain cluster list --all-regions" in asked
    assert cloud.proxy.mutating() == calls


def test_columns_hold_nodes_without_a_name(cloud, up):
    up()
    identity = tagged_by_hand(cloud)
    lines = cloud.cluster("status", "demo").stdout.splitlines()[1:]
    row = next(line for line in lines if identity in line)
    assert row.split()[:3] == [identity, identity, "running"]
    assert row.index("running") == lines[0].index("STATE")
    assert f"{identity}  {identity}  running" in up().stdout


# Keys.

def test_a_key_pair_of_another_user_is_not_used(cloud, up, key):
    cloud.ec2.create_key_pair(KeyName="dtrain-demo")
    up()
    assert {one["KeyName"] for one in cloud.of_cluster("demo")} == {"dtrain-demo-1"}
    cloud.cluster("down", "demo", "--yes")
    assert [pair["KeyName"] for pair in cloud.ec2.describe_key_pairs()["KeyPairs"]] == ["dtrain-demo"]


def test_a_key_pair_that_comes_between_plan_and_import_is_refused(cloud, up, key):
    cloud.proxy.on("ImportKeyPair", lambda exchange: cloud.ec2.create_key_pair(KeyName="dtrain-demo") and None, calls=[1])
    refused = up(status=4).stderr
    assert "holds another key" in refused and cloud.of_cluster("demo") == []
    up()
    assert {one["KeyName"] for one in cloud.of_cluster("demo")} == {"dtrain-demo-1"}


# Instances that cannot be ended.

def test_an_unknown_instance_does_not_keep_the_others_alive(cloud, up):
    up()
    gone = ids(cloud)["w0001"]
    cloud.ec2.terminate_instances(InstanceIds=[gone])

    def unknown(exchange):
        if gone in exchange.form.values():
            return error("InvalidInstanceID.NotFound", f"The instance ID '{gone}' does not exist")(exchange)
        return None
    cloud.proxy.on("TerminateInstances", unknown)
    cloud.proxy.on("DescribeInstances", as_if(gone, b"terminated", b"running"), calls=range(1, 5))
    cloud.cluster("down", "demo", "--yes")
    assert cloud.of_cluster("demo") == [] and cloud.sweep("demo") == []


def as_if(identity, state, shown):
    """The instance is listed in an older state."""
    def listed(exchange):
        answer = exchange.proxy.strict.answer(exchange)
        before, found, after = answer.body.partition(f"<instanceId>{identity}<".encode())
        answer.body = before + found + after.replace(b"<name>" + state, b"<name>" + shown, 1)
        return answer
    return listed


def test_termination_protection_keeps_one_machine_and_is_said(cloud, up):
    up()
    kept = ids(cloud)["w0002"]
    cloud.ec2.modify_instance_attribute(InstanceId=kept, DisableApiTermination={"Value": True})
    begin = time.monotonic()
    down = cloud.json("down", "demo", "--yes", status=3)
    assert time.monotonic() - begin < 60
    left = {one["id"]: one["why"] for one in down["leftover"]}
    assert "OperationNotPermitted" in left[kept] and "disable-api-termination" in left[kept] and "(bug" not in left[kept]
    assert cloud.node_names("demo") == ["w0002"] and down["instances"] == 2
    cloud.ec2.modify_instance_attribute(InstanceId=kept, DisableApiTermination={"Value": False})
    cloud.cluster("down", "demo", "--yes")
    assert cloud.sweep("demo") == []


# Rights.

@pytest.mark.parametrize("action", ["DescribeFileSystems", "DescribeKeyPairs", "DescribeVolumes", "DescribeTags", "ListRoles"])
def test_down_goes_on_where_a_right_is_missing(cloud, up, action):
    up()
    cloud.proxy.on(action, error("AccessDenied", status=403))
    down = cloud.json("down", "demo", "--yes", status=None)
    assert cloud.of_cluster("demo") == [] and len(down["removed"]) >= 2
    cloud.proxy.plans.clear()
    assert cloud.json("down", "demo", "--yes")["leftover"] == [] and cloud.sweep("demo") == []


def test_down_of_a_cluster_without_efs_needs_no_right_for_efs(cloud, up):
    up()
    cloud.proxy.on("DescribeFileSystems", error("AccessDenied", status=403))
    assert cloud.json("down", "demo", "--yes")["leftover"] == []


def test_a_failed_up_names_what_costs_money_and_how_it_ends(cloud, up):
    cloud.proxy.on("CreateLaunchTemplate", error("UnauthorizedOperation", status=403))
    said = up(status=4).stderr
    head = ids(cloud)["head"]
    assert f"head ({head}) keeps running and costs $0.09 an hour" in said and "dtrain cluster down demo" in said
    refused = json.loads(up("--json", status=4).stderr.splitlines()[-1])["error"]
    assert head in refused["hint"] and refused["details"]["cause"] == "permission"


# Numbers.

def test_an_unknown_price_is_no_price_of_nothing(cloud):
    words = ("demo", "-w", 1, "--instance-type", "x1e.32xlarge", "--ami", cloud.image())
    said = cloud.cluster("plan", *words).stdout + cloud.cluster("plan", *words).stderr
    assert "an unknown price (x1e.32xlarge) an hour" in said and "$0.00" not in said
    assert "unknown price" in cloud.cluster("up", *words, status=2).stderr
    cloud.cluster("up", *words, "--yes", "--no-wait")
    assert "unknown price" in cloud.cluster("add", "demo", 1, status=2).stderr
    assert "unknown price" in cloud.cluster("status", "demo").stdout
    assert "$0.00" not in cloud.cluster("cost", "demo").stdout
    told = cloud.json("cost", "demo")
    assert told["dollars_per_hour"] is None and told["unpriced"] == ["x1e.32xlarge"]


@pytest.mark.parametrize("verb", ["plan", "up"])
def test_user_data_that_is_too_long_is_refused_before_anything_is_made(cloud, verb):
    words = ("demo", "-w", 1, "--instance-type", "c5.large", "--ami", cloud.image(), "--prepare", "true;" * 1200)
    said = cloud.cluster(verb, *words, *(["--yes"] if verb == "up" else []), status=2).stderr
    assert "bytes, and EC2 takes" in said
    assert cloud.proxy.mutating() == []


def test_the_default_type_trains_and_is_priced(cloud):
    plan = cloud.json("plan", "demo", "-w", 1, "--ami", cloud.image())
    assert plan["instance_types"] == ["g5.xlarge"] and plan["unpriced"] == [] and plan["quotas"][0]["quota"] == "gpu-g"


@pytest.mark.parametrize("verb", ["plan", "up", "template"])
@pytest.mark.parametrize(("old", "gpu", "other"), [("g4dn.xlarge", "T4", "g6.xlarge: 1 x L4, $0.80"),
                                                   ("p3dn.24xlarge", "V100", "g6.48xlarge: 8 x L4")])
def test_types_whose_gpu_does_not_train_are_refused_with_one_that_does(cloud, verb, old, gpu, other):
    words = ("demo", "--instance-type", old, "--ami", cloud.image())
    said = cloud.cluster(verb, *words, *(["--yes"] if verb == "up" else []), status=2).stderr
    assert f"cannot train on the GPU of {old}, a {gpu}" in said and other in said
    assert cloud.proxy.mutating() == []


@pytest.mark.parametrize("head,worker,drivers", [("c5.large", "g5.xlarge", True), ("g5.xlarge", "c5.large", True),
                                                 ("c5.large", "m5.large", False)])
def test_the_image_has_drivers_where_any_type_has_gpus(cloud, head, worker, drivers):
    cloud.cluster("plan", "demo", "-w", 1, "--head-type", head, "--instance-type", worker)
    asked = [call.json()["Name"] for call in cloud.proxy.calls if call.action == "GetParameter"]
    assert ["nvidia-driver" in name for name in asked] == [drivers]


def test_subnets_that_take_no_nodes_are_left_out(cloud):
    """One in a Local Zone, and one without IPv4 addresses."""
    ids_of_zones = {one["AvailabilityZone"]: one["SubnetId"] for one in cloud.ec2.describe_subnets()["Subnets"]}
    second = f"<subnetId>{ids_of_zones['us-east-1b']}<".encode()

    def other(exchange):
        answer = exchange.proxy.strict.answer(exchange)
        body = answer.body.replace(b">us-east-1a<", b">us-east-1-bos-1a<").replace(b"<ipv6Native>false</ipv6Native>", b"")
        answer.body = body.replace(second, b"<ipv6Native>true</ipv6Native>" + second)
        return answer
    cloud.proxy.on("DescribeSubnets", other)
    plan = cloud.json("plan", "demo", "-w", 1, "--instance-type", "c5.large", "--ami", cloud.image())
    assert plan["zones"][0] == "us-east-1c" and "us-east-1-bos-1a" not in plan["zones"]


# Stopped machines.

def test_a_stopped_head_is_said_to_be_stopped(cloud, up):
    up()
    head = ids(cloud)["head"]
    cloud.ec2.stop_instances(InstanceIds=[head])
    again = up(status=3)
    start = f"the head ({head}) is stopped: dtrain cluster start demo starts it again"
    assert "up to date" not in again.stdout and start in again.stderr
    assert start in cloud.cluster("status", "demo").stderr
    assert "dtrain cluster start demo" in cloud.cluster("add", "demo", 1, "--yes", status=2).stderr
    assert cloud.node_names("demo") == EVERYTHING


# Answers that are none.

def test_pages_without_an_end_keep_to_the_timeout(cloud, up):
    def endless(exchange):
        token = int(exchange.form.get("NextToken", 0)) + 1
        return Answer(200, '<DescribeVpcsResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">'
                           f"<vpcSet/><nextToken>{token}</nextToken></DescribeVpcsResponse>")
    cloud.proxy.on("DescribeVpcs", endless)
    begin = time.monotonic()
    assert "ec2 DescribeVpcs" in up("--timeout", 2, status=4).stderr
    assert time.monotonic() - begin < 60  # without the limit it never ends


@pytest.mark.parametrize("action,body", [("DescribeVpcs", "<html><body>hello</body></html>"), ("GetCallerIdentity", "<a/>"),
                                         ("GetParameter", '{"Surprise": 1}'), ("GetParameter", "[]"),
                                         ("DescribeFileSystems", '{"FileSystems": 7}')])
def test_an_answer_of_another_kind_names_the_call(cloud, action, body):
    cloud.proxy.on(action, lambda exchange: Answer(200, body))
    said = cloud.cluster("up", "demo", "--instance-type", "c5.large", "--shared", "efs", "--yes", status=None)
    assert said.returncode == 1 and (action in said.stderr or "GET /2015-02-01/file-systems" in said.stderr), said.stderr


def test_down_deletes_tags_of_ids_only(cloud, up, key):
    up("--placement", "--elastic-role", "own")
    cloud.cluster("down", "demo", "--yes")
    resources = [value for call in cloud.proxy.calls if call.action == "DeleteTags"
                 for name, value in call.form.items() if name.startswith("ResourceId")]
    assert resources and all(one.split("-")[0] in ("i", "sg", "lt", "key", "vol", "pg") for one in resources), resources


# The list.

def test_list_shows_every_cluster_of_the_region(cloud, up):
    assert "there is no cluster in us-east-1" in cloud.cluster("list").stdout
    up()
    cloud.cluster("up", "other", "-w", 0, "--ami", cloud.image(), *UP)
    cloud.ec2.stop_instances(InstanceIds=[one["InstanceId"] for one in cloud.of_cluster("other")])
    told = {one["name"]: one for one in cloud.json("list")["clusters"]}
    assert (told["demo"]["state"], told["demo"]["machines"], told["demo"]["types"]) == ("running", 3, ["c5.large"])
    assert told["demo"]["dollars_per_hour"] == pytest.approx(3 * 0.085) and told["demo"]["age_hours"] < 1
    assert told["other"]["state"] == "stopped"
    lines = cloud.cluster("list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["NAME", "demo", "other"] and "$0.26" in lines[1]
    assert cloud.json("list", "--region", "eu-west-1")["clusters"] == []


# Clusters of hosts beside those of the account.

def test_a_name_of_the_account_is_not_given_to_hosts(cloud, up):
    up()
    (cloud.folder / "hosts").write_text("h1\n")
    refused = cloud.cluster("register", "demo", "--hosts", "hosts", status=2).stderr
    assert "there is a cluster demo in us-east-1 of your AWS account" in refused, refused
    assert "--price" in cloud.cluster("add", "demo", 1, "--price", 2, "--yes", status=2).stderr
    assert cloud.json("list")["registered"] == []


# Which account a cluster is of.

def test_down_that_finds_nothing_forgets_only_what_is_surely_gone(cloud, up):
    """With keys of another account, or where nothing says of which account the cluster is, it may be there."""
    up()
    file, others = cloud.folder / "home/.dtrain/clusters/demo/regions.json", cloud.folder / "others"
    others.mkdir()
    cloud.run("cluster", "down", "demo", "--yes", HOME=str(others))
    known = json.loads(file.read_text())
    file.write_text(json.dumps({name: known[name] for name in ("schema", "regions")}))  # of an earlier version
    said = cloud.cluster("down", "demo", "--yes").stderr
    assert "us-east-1 stays remembered for cluster demo: nothing says in which account it was made" in said and file.exists()
    file.write_text(json.dumps({**known, "accounts": {"us-east-1": "210987654321"}}))
    said = cloud.cluster("down", "demo", "--yes").stderr
    assert "it was made in account 210987654321, and these keys are of account 123456789012" in said and file.exists()
    file.write_text(json.dumps(known))
    assert "stays remembered" not in cloud.cluster("down", "demo", "--yes").stderr and not file.exists()
