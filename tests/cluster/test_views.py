"""What a user sees of a cluster, and how quickly: requirements 12, 15, 21, 23 and 25."""

import json
import os
import re
import shutil
import subprocess
import time
import urllib.request
from xml.etree import ElementTree

import pytest
from cloud import UP
from faults import Answer, delay, error


@pytest.fixture
def up(cloud):
    image = cloud.image()

    def run(*words, count=2, status=0):
        return cloud.cluster("up", "demo", "-w", count, "--ami", image, *UP, *words, status=status)
    return run


def test_a_whole_life_without_a_wait(cloud):
    words = ("demo", "-w", "2", "--instance-type", "c5.large", "--ami", cloud.image())
    assert cloud.json("plan", *words)["actions"]
    cloud.cluster("up", *words, "--yes", "--no-wait")
    cloud.cluster("add", "demo", "2", "--yes", "--no-wait")
    nodes = cloud.json("status", "demo")["nodes"]
    assert [node["name"] for node in nodes] == ["head", "w0001", "w0002", "w0003", "w0004"]
    assert [node["elastic_status"] for node in nodes] == ["", "", "", "ADD_QUEUED", "ADD_QUEUED"]
    cloud.cluster("remove", "demo", "w0003", "--yes", "--force")
    assert [node["name"] for node in cloud.json("status", "demo")["nodes"]] == ["head", "w0001", "w0002", "w0004"]
    cloud.cluster("down", "demo", "--yes")
    assert cloud.sweep("demo") == [] and cloud.json("status", "demo")["exists"] is False


def test_the_board_shows_machines_and_money(cloud, up):
    """Asked of AWS only once a page asks; what cannot be known says why."""
    up()
    cloud.proxy.calls.clear()
    board = cloud.start("board", "--show-cluster", "demo", "--port", 0, "--json")
    try:
        url = json.loads(board.stdout.readline())["url"]
        with urllib.request.urlopen(url + "api/board", timeout=60) as answer:
            answer.read()
        assert not cloud.proxy.calls
        end = time.monotonic() + 180
        while True:
            with urllib.request.urlopen(url + "api/clusters", timeout=60) as answer:
                [cluster] = json.loads(answer.read())["clusters"]
            if cluster["asked_at"]:
                break
            assert time.monotonic() < end, cluster
            time.sleep(0.2)
    finally:
        board.terminate()
        said = board.communicate(timeout=60)
    assert [node["name"] for node in cluster["status"]["answer"]["nodes"]] == ["head", "w0001", "w0002"], (cluster, said)
    cost = cluster["cost"]["answer"]
    assert cost["dollars_per_hour"] > 0 and cost["dollars_so_far"] >= 0 and len(cost["nodes"]) == 3, cost
    assert len(cluster["health"]["answer"]["nodes"]) == 3, cluster["health"]
    assert cloud.proxy.mutating() == []


def test_nothing_is_done_without_a_yes(cloud):
    words = ("demo", "-w", "1", "--instance-type", "c5.large", "--ami", cloud.image())
    assert "--yes" in cloud.cluster("up", *words, status=2).stderr
    assert cloud.proxy.mutating() == []


def test_r12_no_secret_is_ever_said(cloud, up):
    said = [up("-v"), up("-v", "--json"), cloud.cluster("add", "demo", 1, "--yes", "--no-wait", "-v", "--timing"),
            cloud.cluster("status", "demo", "-v"), cloud.cluster("down", "demo", "--yes", "-v")]
    words = {"AWS_ACCESS_KEY_ID": "ASIATEST", "AWS_SECRET_ACCESS_KEY": "temporary", "AWS_SESSION_TOKEN": "session-token"}
    said.append(cloud.run("cluster", "status", "demo", "-v", "--json", **words))
    for process in said:
        text = process.stdout + process.stderr
        for secret in ("temporary", "session-token", "Signature", "Credential="):
            assert secret not in text, secret
    for call in cloud.proxy.calls:
        assert b"temporary" not in call.body and b"session-token" not in call.body


@pytest.mark.parametrize("words,region", [({"AWS_REGION": "eu-west-1"}, "eu-west-1"),
                                          ({"AWS_REGION": "", "AWS_DEFAULT_REGION": "eu-west-2"}, "eu-west-2")])
def test_r15_the_region_is_the_one_that_was_said(cloud, words, region):
    cloud.run("cluster", "status", "demo", status=2, **words)
    assert {call.region for call in cloud.proxy.calls} == {region}
    cloud.proxy.calls.clear()
    cloud.cluster("status", "demo", "--region", "ap-south-1", status=2)
    assert {call.region for call in cloud.proxy.calls} == {"ap-south-1"}


def test_r15_a_service_may_have_an_endpoint_of_its_own(cloud):
    cloud.run("cluster", "status", "demo", status=2, AWS_ENDPOINT_URL="http://127.0.0.1:1", AWS_ENDPOINT_URL_EC2=cloud.proxy.url)
    assert cloud.proxy.count("DescribeInstances") == 1


def test_r21_what_has_no_end_is_warned_of(cloud, up):
    assert "$6.12 a day" in up("--autostop", "off").stderr
    cloud.cluster("down", "demo", "--yes")
    assert "a day" not in up("--ttl", "12h", "--autostop", "off").stderr
    run = next(call.form for call in reversed(cloud.proxy.calls) if call.action == "RunInstances")
    import base64
    assert "time_to_live='43200'" in base64.b64decode(run["UserData"]).decode().replace("time_to_live=43200", "time_to_live='43200'")


def idle_limits(cloud):
    """The idle time in seconds after which each node ends itself, as its user data has it."""
    return {int(re.search(r"^autostop='?(\d+)", cloud.user_data(one["InstanceId"]), re.MULTILINE)[1])
            for one in cloud.of_cluster("demo")}


def test_a_cluster_that_no_terminal_makes_ends_its_idle_nodes(cloud, up):
    made = up()
    assert made.stderr.count("not run from a terminal, so each node ends itself after 30m") == 1 and idle_limits(cloud) == {1800}
    again = up()
    assert "is up to date" in again.stdout and "terminal" not in again.stderr  # the cluster keeps what it has
    assert cloud.json("status", "demo")["options"]["autostop"] == "30m"
    cloud.cluster("down", "demo", "--yes")
    for words, limit in ((("--autostop", "off"), 0), (("--autostop", "2h"), 7200)):
        assert "terminal" not in up(*words).stderr and idle_limits(cloud) == {limit}
        assert "is up to date" in up().stdout
        cloud.cluster("down", "demo", "--yes")


def test_at_a_terminal_no_idle_limit_is_added(cloud):
    """The same command, read from a terminal."""
    words = ("plan", "demo", "-w", 1, "--instance-type", "c5.large", "--ami", cloud.image())
    assert "not run from a terminal" in cloud.cluster(*words).stderr
    ours, its = os.openpty()
    done = subprocess.run([cloud.program, "cluster", *map(str, words)], env=cloud.environment, cwd=cloud.folder, stdin=its,
                          capture_output=True, text=True, timeout=120)
    os.close(ours), os.close(its)
    assert done.returncode == 0 and "terminal" not in done.stderr and "a day" in done.stderr


def bundle_with(program, folder):
    """Starts the program as packaging/launcher.cpp does; returns the words."""
    for part in ("bin", "lib"):
        (folder / part).mkdir(parents=True)
    loader = folder / "lib" / "ld-linux-x86-64.so.2"
    shutil.copy("/lib64/ld-linux-x86-64.so.2", loader)
    shutil.copy(program, folder / "bin" / "dtrain")
    (folder / "dtrain").write_text("the launcher, which nothing starts here")
    return [loader, "--argv0", "dtrain", folder / "bin" / "dtrain"]


def test_plan_and_up_warn_of_a_program_that_other_machines_may_not_start(cloud, up):
    plan = ("cluster", "plan", "demo", "-w", 1, "--instance-type", "c5.large", "--ami", cloud.image())
    assert "this dtrain is no bundle" in cloud.run(*plan).stderr and "this dtrain is no bundle" in up().stderr
    words = bundle_with(cloud.program, cloud.folder / "bundle")
    done = subprocess.run([*map(str, words), *map(str, plan)], env=cloud.environment, cwd=cloud.folder, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "bundle" not in done.stderr, done.stderr


def test_a_template_is_the_same_with_and_without_a_terminal(cloud):
    words = ("template", "demo", "-w", 1, "--instance-type", "c5.large", "--ami", cloud.image())
    printed = cloud.cluster(*words)
    assert "autostop=0" in printed.stdout and "terminal" not in printed.stderr


@pytest.mark.parametrize("text", ["30", "-5m", "never", "1w"])
def test_a_time_that_is_none_is_refused(cloud, text):
    said = cloud.cluster("plan", "demo", f"--autostop={text}", status=2).stderr
    assert "is not a duration" in said and "off for none" in said and cloud.proxy.count() == 0


def test_r21_status_and_cost_say_what_it_costs(cloud, up):
    up()
    cost = cloud.json("cost", "demo")
    assert cost["dollars_per_hour"] == pytest.approx(3 * 0.085) == cloud.json("status", "demo")["dollars_per_hour"]
    assert cost["dollars_per_day"] == pytest.approx(24 * 3 * 0.085) and 0 <= cost["dollars_so_far"] < 0.3
    assert [node["name"] for node in cost["nodes"]] == ["head", "w0001", "w0002"]


def test_status_says_why_it_knows_nothing_of_agents(cloud, up):
    up()
    nodes = cloud.json("status", "demo", "--no-head")["nodes"]
    assert {(node["agent"], node["agent_why"]) for node in nodes} == {("unknown", "not contacted because of --no-head")}
    assert "unknown: not contacted" in cloud.cluster("status", "demo", "--no-head").stdout


def spot_prices(**dollars):
    """The answer with these prices, by zone; the newest last."""
    items = "".join(f"<item><instanceType>c5.large</instanceType><productDescription>Linux/UNIX</productDescription>"
                    f"<spotPrice>{price}</spotPrice><timestamp>2026-01-0{day}T00:00:00.000Z</timestamp>"
                    f"<availabilityZone>us-east-1{zone}</availabilityZone></item>"
                    for day, (zone, price) in enumerate(dollars.items(), 1))
    return lambda exchange: Answer(200, '<DescribeSpotPriceHistoryResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">'
                                        f"<spotPriceHistorySet>{items}</spotPriceHistorySet></DescribeSpotPriceHistoryResponse>")


def plan(cloud, *words):
    return ("plan", "demo", "-w", 2, "--instance-type", "c5.large", "--ami", cloud.image(), *words)


def test_spot_prices_stand_beside_those_on_demand(cloud):
    cloud.proxy.on("DescribeSpotPriceHistory", spot_prices(a="0.03", b="0.04", c="0.05"))
    told = cloud.json(*plan(cloud, "--spot", "prefer"))
    assert told["dollars_per_hour"] == pytest.approx(3 * 0.085)
    assert told["spot"]["estimate"] is True and told["spot"]["dollars_per_hour"] == pytest.approx(0.085 + 2 * 0.04)
    assert {(one["zone"], one["dollars_per_hour"], one["dollars_per_hour_on_demand"]) for one in told["spot"]["prices"]} == {
        ("us-east-1a", 0.03, 0.085), ("us-east-1b", 0.04, 0.085), ("us-east-1c", 0.05, 0.085)}
    said = cloud.cluster(*plan(cloud, "--spot", "only")).stdout
    assert "$0.12 an hour on spot, estimated from current prices" in said and "$0.26 an hour on demand" in said
    call = next(call.form for call in cloud.proxy.calls if call.action == "DescribeSpotPriceHistory")
    assert (call["InstanceType.1"], call["ProductDescription.1"]) == ("c5.large", "Linux/UNIX")
    assert cloud.json(*plan(cloud))["spot"] is None


@pytest.mark.parametrize("fault,why", [(error("UnauthorizedOperation", status=403), "UnauthorizedOperation"),
                                       (spot_prices(), "EC2 lists no prices")])
def test_spot_prices_that_cannot_be_had_are_on_demand(cloud, fault, why):
    cloud.proxy.on("DescribeSpotPriceHistory", fault)
    told = cloud.json(*plan(cloud, "--spot", "only"))
    assert why in told["spot"]["why_not"] and told["spot"]["dollars_per_hour"] is None
    said = cloud.cluster(*plan(cloud, "--spot", "only")).stdout
    assert "$0.26 an hour on demand" in said and "spot prices are unknown" in said and why in said


def on_spot(exchange):
    """All instances are spot: moto's fleets do not mark theirs."""
    answer = exchange.forward()
    answer.body = answer.body.replace(b"<instanceType>", b"<instanceLifecycle>spot</instanceLifecycle><instanceType>")
    return answer


def test_cost_counts_spot_machines_at_the_price_of_their_zone(cloud, up):
    up()
    zone = cloud.json("status", "demo")["nodes"][0]["zone"]
    cloud.proxy.on("DescribeInstances", on_spot)
    cloud.proxy.on("DescribeSpotPriceHistory", spot_prices(**{zone[-1]: "0.03", "z": "0.9"}))
    cost = cloud.json("cost", "demo")
    assert [node["spot_dollars_per_hour"] for node in cost["nodes"]] == [0.03, 0.03, 0.03]
    assert cost["spot"]["dollars_per_hour"] == pytest.approx(3 * 0.03)
    assert "estimated" in cloud.cluster("cost", "demo").stdout


def impaired(identity):
    item = (f"<item><instanceId>{identity}</instanceId><systemStatus><status>impaired</status></systemStatus>"
            "<instanceStatus><status>ok</status></instanceStatus></item>")
    return lambda exchange: Answer(200, '<DescribeInstanceStatusResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">'
                                        f"<instanceStatusSet>{item}</instanceStatusSet></DescribeInstanceStatusResponse>")


def test_r23_an_impaired_node_is_named(cloud, up):
    up()
    assert cloud.json("health", "demo", "--no-head")["well"] is True
    victim = cloud.json("status", "demo")["nodes"][2]["instance_id"]
    cloud.proxy.on("DescribeInstanceStatus", impaired(victim))
    health = cloud.json("health", "demo", "--no-head", status=20)
    assert [(node["name"], node["why"]) for node in health["nodes"] if not node["well"]] == [
        ("w0002", "the machine below it is impaired")]


@pytest.mark.parametrize("description,well", [("[Completed] Instance reboot", True), ("[Canceled] Instance reboot", True),
                                              ("Instance reboot", False)])
def test_an_event_that_is_over_is_not_planned(cloud, up, description, well):
    up()
    item = (f"<item><instanceId>{ids(cloud)['w0001']}</instanceId><systemStatus><status>ok</status></systemStatus><instanceStatus>"
            f"<status>ok</status></instanceStatus><eventsSet><item><code>system-reboot</code><description>{description}</description>"
            "</item></eventsSet></item>")
    cloud.proxy.on("DescribeInstanceStatus", lambda exchange: Answer(
        200, f"<DescribeInstanceStatusResponse><instanceStatusSet>{item}</instanceStatusSet></DescribeInstanceStatusResponse>"))
    health = cloud.json("health", "demo", "--no-head", status=0 if well else 20)
    assert health["well"] is well
    assert [node["why"] for node in health["nodes"] if not node["well"]] == ([] if well else ["AWS plans: system-reboot"])


def ids(cloud):
    return {node["name"]: node["instance_id"] for node in cloud.json("status", "demo", "--no-head")["nodes"]}


REPLACE = ("health", "demo", "--replace", "--no-head")


@pytest.mark.parametrize("victim,name,base", [("w0002", "w0002", "yes"), ("w0003", "w0004", None)])
def test_r23_an_impaired_worker_is_replaced_by_one_of_its_kind(cloud, up, victim, name, base):
    """A base worker passes its name on; the replacement of an added one is queued for the job."""
    up()
    cloud.cluster("add", "demo", 1, "--yes", "--no-wait")
    before = ids(cloud)
    cloud.proxy.on("DescribeInstanceStatus", impaired(before[victim]))
    assert "with --yes" in cloud.cluster(*REPLACE, status=2).stderr
    assert ids(cloud) == before

    replaced = cloud.json(*REPLACE, "--yes")["replaced"]
    after = ids(cloud)
    assert replaced == [{"node": victim, "instance_id": before[victim], "new_node": name, "new_instance_id": after[name]}]
    assert before[victim] not in after.values() and len(after) == len(before)
    tags = cloud.tags(after[name])
    assert (tags.get("dtrain:base"), tags.get("elastic_worker_status")) == (base, None if base else "ADD_QUEUED")
    assert "is up to date" in up().stdout and cloud.json("health", "demo", "--no-head")["replaced"] == []


def test_r23_a_replacement_that_was_cut_short_goes_on(cloud, up):
    up()
    before = ids(cloud)
    cloud.proxy.on("DescribeInstanceStatus", impaired(before["w0001"]))
    cloud.proxy.on("TerminateInstances", error("UnauthorizedOperation", status=403), calls={1})
    cloud.cluster(*REPLACE, "--yes", status=4)
    assert len(ids(cloud)) == 4
    cloud.cluster(*REPLACE, "--yes")
    assert set(ids(cloud)) == {"head", "w0001", "w0002"} and ids(cloud)["w0001"] != before["w0001"]


@pytest.mark.parametrize("victim", ["w0001", "w0003"])
def test_r23_a_replacement_that_was_started_and_not_noted_goes_on(cloud, up, victim):
    up()
    cloud.cluster("add", "demo", 1, "--yes", "--no-wait")
    before = ids(cloud)
    cloud.proxy.on("DescribeInstanceStatus", impaired(before[victim]))
    cloud.proxy.on("CreateTags", error("UnauthorizedOperation", status=403), calls={1})
    said = cloud.cluster(*REPLACE, "--yes", status=4).stderr
    fresh, = set(ids(cloud).values()) - set(before.values())
    assert fresh in said
    cloud.cluster(*REPLACE, "--yes")
    assert set(ids(cloud).values()) == {*before.values(), fresh} - {before[victim]} and fresh not in ids(cloud)


def test_r23_the_head_is_never_replaced(cloud, up):
    up()
    before = ids(cloud)
    cloud.proxy.on("DescribeInstanceStatus", impaired(before["head"]))
    done = cloud.proxy.mutating()
    assert "cluster remove demo head" in cloud.cluster(*REPLACE, "--yes", status=20).stdout
    assert cloud.proxy.mutating() == done


def pages_of_one():
    """Each reservation is on a page of its own; all pages are read once."""
    whole = []

    def page_of(exchange):
        page = int(exchange.form.get("NextToken", 0))
        exchange.set_form(NextToken=None, MaxResults=None)
        if page == 0:
            whole[:] = [exchange.forward().body]
        tree = ElementTree.fromstring(whole[0])
        listed = next(child for child in tree if child.tag.endswith("reservationSet"))
        space, items = listed.tag.removesuffix("reservationSet"), list(listed)
        ElementTree.register_namespace("", space.strip("{}"))
        for item in items[:page] + items[page + 1:]:
            listed.remove(item)
        if page + 1 < len(items):
            ElementTree.SubElement(tree, f"{space}nextToken").text = str(page + 1)
        return Answer(200, ElementTree.tostring(tree))
    return page_of


def test_r23_nodes_are_read_page_by_page(cloud, up):
    up()
    cloud.cluster("add", "demo", 1, "--yes", "--no-wait")
    cloud.proxy.calls.clear()
    cloud.proxy.on("DescribeInstances", pages_of_one())
    nodes = cloud.json("status", "demo")["nodes"]
    assert [node["name"] for node in nodes] == ["head", "w0001", "w0002", "w0003"]
    assert cloud.proxy.count("DescribeInstances") == 3  # head, fleet, addition


def test_r23_five_hundred_nodes_take_few_calls(cloud):
    """At 10 ms per call; the remaining time is that of moto."""
    image = cloud.image()
    for batch in range(5):
        tags = {"dtrain:cluster": "demo", "dtrain:role": "worker", "dtrain:base": "yes"}
        cloud.ec2.run_instances(ImageId=image, InstanceType="c5.large", MinCount=100, MaxCount=100, TagSpecifications=[
            {"ResourceType": "instance", "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}])
    cloud.proxy.on("*", delay(0.01))
    cloud.proxy.on("DescribeInstances", pages_of_one())
    for verb, calls in (("status", 7), ("health", 7 + 5 + 1)):
        cloud.proxy.calls.clear()
        begin = time.monotonic()
        nodes = cloud.json(verb, "demo", "--no-head")["nodes"]
        took = time.monotonic() - begin
        assert len({node["instance_id"] for node in nodes}) == 500
        assert cloud.proxy.count("DescribeInstances") == 5 and cloud.proxy.count() == calls, cloud.proxy.counts()
        print(f"{verb} of 500 nodes: {calls} calls, {took:.2f} s")


def test_r25_an_up_of_eight_takes_few_calls(cloud, up):
    begin = time.monotonic()
    told = up("--timing", count=8)
    took = time.monotonic() - begin
    assert len(cloud.of_cluster("demo")) == 9
    assert cloud.proxy.count() <= 40, cloud.proxy.counts()
    assert f"{cloud.proxy.count()} calls in" in told.stderr
    assert "\x1b" not in told.stderr and "\r" not in told.stderr
    print(f"up -w 8: {cloud.proxy.count()} calls, {took:.2f} s")


@pytest.mark.parametrize("verb", ["health", "cost", "status"])
def test_a_cluster_that_is_not_there_is_neither_well_nor_free(cloud, verb):
    assert "there is no cluster demo" in cloud.cluster(verb, "demo", status=2).stderr
