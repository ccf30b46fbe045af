"""`--region A,B,C`: one region after the other while there is no capacity. What is given up leaves nothing behind, also after a
SIGKILL, and later commands find the cluster where it is."""

import json

import pytest
from cloud import UP
from faults import error
from places import A, ALL, B, C, WORDS


def remembered(cloud):
    file = cloud.folder / "home/.dtrain/clusters/demo/regions.json"
    return json.loads(file.read_text())["regions"] if file.exists() else []


def test_the_first_region_with_capacity_has_the_cluster(cloud, places, regions):
    said = regions("--shared", "efs").stderr
    assert f"in this order, while there is no capacity: {A} ($" in said and "data in S3 stays in the region of its bucket" in said
    assert len(places.machines(A)) == 3 and places.left(B) == [] and places.calls(B) + places.calls(C) == []
    assert remembered(cloud) == [A]


@pytest.mark.parametrize("words", [(), ("--shared", "efs", "--heal"), ("--spot", "only")])
def test_what_a_region_without_capacity_was_left_with_is_taken_away(cloud, places, regions, words):
    places.none_in(A, B)
    made = json.loads(regions(*words, "--json").stdout)
    assert made["region"] == C and len(made["nodes"]) == 3
    assert {one["code"] for one in made["attempts"]} == {"InsufficientInstanceCapacity", ""}
    assert "CreateSecurityGroup" in places.calls(A) and "CreateSecurityGroup" in places.calls(B)
    assert places.left(A) == [] and places.left(B) == [] and len(places.machines(C)) == 3
    order = [one.region for one in cloud.proxy.calls if one.action in ("CreateSecurityGroup", "DeleteSecurityGroup")]
    assert order == [A, A, B, B, C]


def test_a_head_without_workers_is_ended_before_the_next_region_is_tried(cloud, places, regions):
    zones = [one["ZoneName"] for one in places.ec2[A].describe_availability_zones()["AvailabilityZones"]]
    cloud.proxy.strict.capacity = {("c5.large", zone): 1 for zone in zones}
    said = regions().stderr
    assert f"cluster demo: {A} has no capacity for it, now {B}" in said
    assert places.machines(A) == [] and places.left(A) == [] and len(places.machines(B)) == 3


@pytest.mark.parametrize(("action", "code"), [("RunInstances", "VcpuLimitExceeded"), ("CreateFleet", "MaxSpotInstanceCountExceeded"),
                                              ("CreateSecurityGroup", "SecurityGroupLimitExceeded")])
def test_a_quota_that_does_not_suffice_is_no_capacity(cloud, places, regions, action, code):
    cloud.proxy.on(action, lambda exchange: error(code)(exchange) if exchange.region == A else None)
    regions()
    assert places.left(A) == [] and len(places.machines(B)) == 3


def test_a_quota_of_a_single_region_stops_as_before(cloud, places):
    cloud.proxy.on("RunInstances", error("VcpuLimitExceeded"))
    said = cloud.cluster("up", "demo", *WORDS, status=4).stderr
    assert "VcpuLimitExceeded" in said and places.left(A) != []


def test_other_refusals_do_not_move_the_cluster(cloud, places, regions):
    cloud.proxy.on("RunInstances", error("UnauthorizedOperation", status=403))
    said = regions(status=4).stderr
    assert "the same command continues" in said and places.left(A) != [] and places.calls(B) == []
    cloud.cluster("down", "demo", "--yes")
    assert places.left(A) == [] and remembered(cloud) == []


def test_no_capacity_anywhere_leaves_nothing_and_names_all(cloud, places, regions):
    places.none_in(A, B, C)
    said = regions("--shared", "efs", status=4).stderr
    assert all(f"{region}: on-demand c5.large in {region}" in said for region in (A, B, C)) and "InsufficientInstanceCapacity" in said
    assert places.left(A) + places.left(B) + places.left(C) == [] and remembered(cloud) == []


def test_later_commands_find_it(cloud, places, regions):
    places.none_in(A)
    regions()
    told = cloud.json("status", "demo")
    assert told["region"] == B and len(told["nodes"]) == 3
    assert f"cluster demo is in {B}" in cloud.cluster("status", "demo").stderr
    assert [(one["name"], one["region"]) for one in cloud.json("list")["clusters"]] == [("demo", B)]
    assert [one["region"] for one in cloud.json("list", "--region", f"{C},{B}")["clusters"]] == [B]
    assert "is up to date" in cloud.cluster("up", "demo", *WORDS).stdout and "is up to date" in regions().stdout
    cloud.cluster("add", "demo", 1, "--yes", "--no-wait")
    assert len(places.machines(B)) == 4 and places.machines(A) == []
    cloud.cluster("down", "demo", "--yes")
    assert places.left(B) == [] and remembered(cloud) == []
    assert "there is no cluster demo" in cloud.cluster("status", "demo", status=2).stderr


def test_a_machine_that_knows_nothing_finds_it_by_the_same_list(cloud, places, regions):
    places.none_in(A)
    regions()
    (cloud.folder / "home/.dtrain/clusters/demo/regions.json").unlink()
    assert cloud.json("status", "demo")["nodes"] == []
    assert "--all-regions" in cloud.cluster("add", "demo", 1, "--yes", status=2).stderr
    assert cloud.json("status", "demo", "--region", ALL)["region"] == B
    assert "is up to date" in regions().stdout and remembered(cloud) == [B]
    (cloud.folder / "home/.dtrain/clusters/demo/regions.json").write_text("damaged")
    cloud.cluster("down", "demo", "--region", ALL, "--yes")
    assert places.left(B) == []


def kill_at(cloud, region, action, words, where=ALL):
    """Starts `up`, and kills it just before this call."""
    process = []

    def watch(exchange):
        if exchange.region == region and exchange.action == action and process and process[0].poll() is None:
            process[0].kill()
            process[0].wait()
    cloud.proxy.before_call = watch
    process.append(cloud.start("cluster", "up", "demo", *WORDS, "--region", where, *words))
    process[0].communicate(timeout=120)
    cloud.proxy.before_call = None
    cloud.proxy.rest()
    assert process[0].returncode == -9


KILLS = [(A, "RunInstances"), (A, "DeleteSecurityGroup"), (A, "DeleteRole"), (B, "CreateSecurityGroup"), (B, "RunInstances"),
         (B, "CreateFleet")]


@pytest.mark.parametrize(("region", "action"), KILLS)
def test_down_finds_what_a_killed_up_left(cloud, places, region, action):
    places.none_in(A)
    kill_at(cloud, region, action, ("--shared", "efs", "--elastic-role", "own"))
    said = cloud.cluster("down", "demo", "--yes").stdout
    assert places.left(A) == [] and places.left(B) == []
    assert remembered(cloud) == [] or "there is no cluster demo in" in said  # AWS had executed the last call


@pytest.mark.parametrize(("region", "action"), KILLS)
def test_up_goes_on_where_a_killed_one_left_off(cloud, places, regions, region, action):
    places.none_in(A)
    words = ("--shared", "efs", "--elastic-role", "own")
    kill_at(cloud, region, action, words)
    regions(*words)
    assert places.left(A) == [] and len(places.machines(B)) == 3 and places.left(C) == [] and remembered(cloud) == [B]
    cloud.cluster("down", "demo", "--delete-storage", "--yes")
    assert places.left(B) == []


def test_what_a_killed_up_left_in_a_region_that_is_no_longer_asked_for_goes(cloud, places, regions):
    kill_at(cloud, A, "RunInstances", ())
    assert places.left(A) != []
    said = regions(where=f"{B},{C}").stderr
    assert f"removing what an interrupted `up` of cluster demo left in {A}" in said
    assert places.left(A) == [] and len(places.machines(B)) == 3


def test_a_complete_cluster_stays_where_it_is(cloud, places, regions):
    regions(where=f"{B},{C}")
    places.none_in(B)
    cloud.ec2 = places.ec2[B]
    lost = next(one["InstanceId"] for one in places.machines(B) if cloud.tags(one["InstanceId"])["dtrain:node"] == "w0001")
    cloud.ec2.terminate_instances(InstanceIds=[lost])
    said = regions(status=4).stderr
    assert "could be started" in said and len(places.machines(B)) == 2 and places.calls(A) == [] and places.calls(C) == []


def test_two_clusters_of_the_name_are_not_confused(cloud, places, regions):
    cloud.cluster("up", "demo", *WORDS, "--region", A)
    cloud.cluster("up", "demo", *WORDS, "--region", C)
    assert f"there is a cluster demo in {A} and in {C}" in regions(status=2).stderr


def test_the_plan_tells_the_order_with_prices_and_who_is_left_out(cloud, places):
    cloud.proxy.on("DescribeInstanceTypeOfferings", lambda exchange: exchange.set_form(**{"Filter.1.Value.1": "x9.large"})
                   if exchange.region == B else None)
    words = ("plan", "demo", "-w", 2, "--instance-type", "c5.large", "--region", ALL)
    plan = cloud.json(*words)
    assert [(one["region"], one["why_not"]) for one in plan["regions"]] == [
        (A, None), (C, None), (B, f"region {B} has no instance type c5.large")]
    assert plan["region"] == A and plan["regions"][0]["dollars_per_hour"] == plan["dollars_per_hour"] > 0
    said = cloud.cluster(*words).stderr
    assert f"in this order, while there is no capacity: {A} ($0.26 an hour), {C} ($0.26 an hour)" in said
    assert f"left out: {B}: region {B} has no instance type c5.large" in said
    assert cloud.json("plan", "demo", "-w", 2, "--instance-type", "c5.large")["regions"] == [
        {"region": A, "dollars_per_hour": plan["dollars_per_hour"], "unpriced": [], "why_not": None}]
    assert cloud.proxy.mutating() == []


@pytest.mark.parametrize("words", [("--shared", "efs:fs-0123456789abcdef0"), ("--image", "ami-0123456789abcdef0"),
                                   ("--vpc", "vpc-1"), ("--subnet", "subnet-1"), ("--capacity-reservation", "cr-0123456789abcdef0"),
                                   ("--kms-key", "arn:aws:kms:us-east-1:123456789012:alias/training"), ("--on", "emr")])
@pytest.mark.parametrize("verb", ["up", "plan"])
def test_what_belongs_to_one_region_is_refused_before_any_call(cloud, verb, words):
    said = cloud.cluster(verb, "demo", "--instance-type", "c5.large", "--region", ALL, *words, status=2).stderr
    assert f"{' '.join(words)} belongs to one region, and --region names several" in said and cloud.proxy.count() == 0


@pytest.mark.parametrize(("text", "said"), [("us-east-1,,eu-west-1", "names no region in ''"), ("Europe", "names no region in 'Europe'"),
                                            ("us-east-1,us-east-1", "names us-east-1 twice")])
def test_a_list_that_is_none_is_refused_before_any_call(cloud, text, said):
    assert said in cloud.cluster("up", "demo", *WORDS, "--region", text, status=2).stderr and cloud.proxy.count() == 0
    assert said in cloud.cluster("down", "demo", "--yes", "--region", text, status=2).stderr and cloud.proxy.count() == 0


def test_a_kept_file_system_binds_the_cluster_to_its_region(cloud, places, regions):
    """AWS counts nothing in it, which says little of its content."""
    cloud.cluster("up", "demo", *WORDS, "--shared", "efs", "--region", B)
    cloud.cluster("down", "demo", "--yes")
    [kept] = places.left(B)
    places.none_in(A, B, C)
    cloud.proxy.calls.clear()
    said = regions("--shared", "efs", status=2).stderr
    assert f"file system {kept} of cluster demo is kept in {B}" in said and f"give --region {B} alone" in said
    assert cloud.proxy.mutating() == []


@pytest.mark.parametrize("words", [("--shared", "efs"), ()])
def test_a_kept_file_system_outlives_an_up_without_capacity(cloud, places, words):
    cloud.cluster("up", "demo", *WORDS, "--shared", "efs", "--region", B)
    cloud.cluster("down", "demo", "--yes")
    kept = places.left(B)
    places.none_in(B)
    cloud.cluster("up", "demo", *WORDS, *words, "--region", B, status=4)
    assert places.left(B) == kept and kept[0].startswith("fs-")


def meanwhile(cloud, region, action, run):
    """Calls run() just before this call."""
    def watch(exchange):
        if exchange.region == region and exchange.action == action:
            cloud.proxy.before_call = None
            run()
    cloud.proxy.before_call = watch


@pytest.mark.parametrize("words", [(), ("--elastic-role", "own")])
def test_what_another_up_makes_is_not_taken_for_remains(cloud, places, regions, words):
    """Also with other options, for which it would be removed first."""
    said = []
    meanwhile(cloud, A, "CreateFleet", lambda: said.append(regions(*words, where=f"{B},{A}", status=2).stderr))
    regions()
    assert f"another `up` makes cluster demo in {A}: its last sign of life is" in said[0]
    assert len(places.machines(A)) == 3 and places.left(B) == []


def test_a_cluster_that_another_up_has_finished_meanwhile_moves_to_no_other_region(cloud, places, regions):
    def finish():
        cloud.cluster("up", "demo", *WORDS, "--region", A)
        places.none_in(A)
    meanwhile(cloud, A, "CreateFleet", finish)
    said = cloud.cluster("up", "demo", "-w", 8, *UP, "--region", ALL, status=4).stderr
    assert "the same command continues" in said and len(places.machines(A)) == 3 and places.calls(B) == []


def test_kept_storage_is_removed_where_it_is(cloud, places, regions):
    places.none_in(A)
    regions("--shared", "efs")
    assert "--delete-storage removes it" in cloud.cluster("down", "demo", "--yes").stdout
    [kept] = places.left(B)
    assert kept.startswith("fs-")
    cloud.cluster("down", "demo", "--yes", "--delete-storage")
    assert places.left(B) == []


def test_the_price_that_is_asked_for_is_that_of_the_dearest_region(cloud, places, tmp_path):
    said = cloud.run("cluster", "up", "demo", "-w", 2, "--instance-type", "c5.large", "--region", ALL, "--no-wait", status=2).stderr
    assert "an hour at most, in the dearest of these regions?" in said and cloud.proxy.mutating() == []


def test_a_cluster_of_one_region_is_found_from_another_one(cloud, places):
    """The usual region of the user's next shell is another one."""
    cloud.cluster("up", "demo", *WORDS)
    assert remembered(cloud) == [A]
    told = cloud.run("cluster", "status", "demo", "--no-head", AWS_REGION=B)
    assert f"cluster demo is in {A}" in told.stderr
    assert "is up to date" in cloud.run("cluster", "up", "demo", *WORDS, AWS_REGION=B).stdout and places.machines(B) == []
    cloud.run("cluster", "down", "demo", "--yes", AWS_REGION=B)
    assert places.left(A) == [] and remembered(cloud) == []


@pytest.mark.parametrize(("code", "status"), [("UnauthorizedOperation", 403), ("AuthFailure", 401)])
def test_a_usual_region_that_refuses_hides_no_cluster_of_another_one(cloud, places, code, status):
    """An organization denies it, or the account has not enabled it."""
    cloud.cluster("up", "demo", *WORDS)
    cloud.proxy.on("*", lambda exchange: error(code, status=status)(exchange) if exchange.region == B else None)
    said = cloud.run("cluster", "status", "demo", "--no-head", AWS_REGION=B)
    assert f"{B} cannot be asked: " in said.stderr and f"cluster demo is in {A}" in said.stderr and "w0002" in said.stdout
    cloud.run("cluster", "status", "other", "--no-head", AWS_REGION=B, status=4)
    cloud.run("cluster", "down", "demo", "--yes", AWS_REGION=B)
    assert places.left(A) == [] and remembered(cloud) == []


def test_an_up_in_one_region_keeps_what_an_interrupted_one_left_elsewhere(cloud, places):
    kill_at(cloud, A, "CreateFleet", ())
    assert places.machines(A) and remembered(cloud) == [A, B, C]
    cloud.cluster("up", "demo", *WORDS, "--region", B)
    assert remembered(cloud) == [B, A, C]
    cloud.cluster("down", "demo", "--yes")
    assert places.left(A) == [] and places.left(B) == [] and remembered(cloud) == []


def test_an_up_in_one_region_that_is_killed_is_found(cloud, places):
    kill_at(cloud, B, "CreateFleet", (), where=B)
    assert places.machines(B) and remembered(cloud) == [B]
    cloud.cluster("down", "demo", "--yes")
    assert places.left(B) == [] and remembered(cloud) == []


def test_an_up_in_one_region_without_capacity_is_not_remembered(cloud, places):
    places.none_in(B)
    cloud.cluster("up", "demo", *WORDS, "--region", B, status=4)
    assert places.left(B) == [] and remembered(cloud) == []


def test_a_cluster_is_remembered_until_it_is_gone(cloud, places):
    """One command ends one cluster: the one that the others take."""
    cloud.cluster("up", "demo", *WORDS, "--region", B)
    cloud.cluster("up", "demo", *WORDS, "--region", C)
    assert remembered(cloud) == [C, B] and cloud.json("status", "demo")["region"] == C
    said = cloud.cluster("down", "demo", "--yes").stderr
    assert f"the cluster demo in {B} stays; dtrain cluster down demo --region {B} ends it" in said
    assert places.left(C) == [] and len(places.machines(B)) == 3 and remembered(cloud) == [B]
    cloud.cluster("down", "demo", "--yes")
    assert places.left(B) == [] and remembered(cloud) == []


def test_down_ends_the_cluster_of_the_usual_region_also_where_several_are_remembered(cloud, places):
    others = cloud.folder / "others"
    others.mkdir()
    cloud.run("cluster", "up", "demo", *WORDS, HOME=str(others))
    for region in (B, C):
        cloud.cluster("up", "demo", *WORDS, "--region", region)
    said = cloud.cluster("down", "demo", "--yes").stderr
    assert all(f"the cluster demo in {region} stays" in said for region in (B, C))
    assert places.left(A) == [] and len(places.machines(B)) == len(places.machines(C)) == 3 and remembered(cloud) == [C, B]


def test_the_usual_region_comes_before_a_remembered_one(cloud, places):
    """There are two clusters of the name; and a region that has none any more is no longer taken."""
    cloud.cluster("up", "demo", *WORDS)
    cloud.cluster("up", "demo", *WORDS, "--region", C)
    assert remembered(cloud) == [C, A] and cloud.json("status", "demo")["region"] == A
    cloud.cluster("down", "demo", "--yes")
    assert places.left(A) == [] and len(places.machines(C)) == 3 and remembered(cloud) == [C]
    others = cloud.folder / "others"
    others.mkdir()
    cloud.run("cluster", "down", "demo", "--yes", "--region", C, HOME=str(others))
    cloud.cluster("up", "demo", *WORDS)
    assert len(places.machines(A)) == 3 and places.machines(C) == []


def test_down_says_that_it_found_nothing(cloud, places):
    said = cloud.cluster("down", "never-there", "--yes").stdout
    assert f"there is no cluster never-there in {A}" in said and "--all-regions" in said and "is gone" not in said
    cloud.cluster("up", "demo", *WORDS)
    assert f"there is no cluster demo in {B}" in cloud.cluster("down", "demo", "--yes", "--region", B).stdout
    assert len(places.machines(A)) == 3 and remembered(cloud) == [A]
    assert "cluster demo is gone" in cloud.cluster("down", "demo", "--yes").stdout


def test_down_names_all_regions_in_which_it_found_nothing(cloud, places):
    cloud.cluster("up", "demo", *WORDS)
    others = cloud.folder / "others"
    others.mkdir()
    cloud.run("cluster", "down", "demo", "--yes", HOME=str(others))
    said = cloud.run("cluster", "down", "demo", "--yes", AWS_REGION=B).stdout
    assert f"there is no cluster demo in {B} or {A};" in said
    assert remembered(cloud) == []


def test_a_region_that_does_not_answer_ends_no_cluster_elsewhere(cloud, places):
    cloud.cluster("up", "demo", *WORDS)
    cloud.proxy.on("*", lambda exchange: error("ServiceUnavailable", status=503)(exchange) if exchange.region == B else None)
    cloud.run("cluster", "down", "demo", "--yes", AWS_REGION=B, AWS_MAX_ATTEMPTS="1", status=4)
    assert len(places.machines(A)) == 3 and remembered(cloud) == [A]


def test_a_remembered_region_that_refuses_keeps_no_cluster_elsewhere(cloud, places):
    kill_at(cloud, A, "CreateFleet", (), where=f"{A},{C}")
    cloud.proxy.on("*", lambda exchange: error("UnauthorizedOperation")(exchange) if exchange.region == C else None)
    said = cloud.cluster("down", "demo", "--yes", status=3).stderr
    assert f"{C} cannot be asked: " in said and places.left(A) == [] and remembered(cloud) == [C]
    said = cloud.cluster("up", "demo", *WORDS, status=4).stderr
    assert f"{C} cannot be asked: " in said and "--region" in said
    cloud.cluster("up", "demo", *WORDS, "--region", f"{A},{B}")
    assert len(places.machines(A)) == 3 and remembered(cloud) == [A, C]
