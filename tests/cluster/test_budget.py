"""What a cluster may cost: `--budget`, which `cluster watch --heal` keeps, and `--max-price` of spot instances."""

import json
import pathlib
import re
import time

import pytest
from cloud import UP
from faults import error
from test_heal import HEAL, group, instance, lose, names, set_tag, wish
from test_views import on_spot, spot_prices
from test_watch import Job, PATIENCE


def tags_of_group(cloud):
    return {tag["Key"]: tag["Value"] for tag in group(cloud)["Tags"]}


def spent(cloud, dollars, warned=False):
    """As if the machines had cost so much until now."""
    set_tag(cloud, "dtrain:spent", json.dumps({"schema": "dtrain.cluster-spent/1", "dollars": dollars, "at": int(time.time()),
                                               "warned": warned, "unpriced": []}))


def test_cost_says_what_of_the_budget_is_spent_and_left(cloud, up):
    said = up("--budget", 50).stderr
    assert "of the budget of $50.00 are spent" in said and "cluster watch demo --heal keeps it" in said
    assert wish(cloud)["budget"] == 50
    spent(cloud, 10)
    told = cloud.json("cost", "demo")["budget"]
    assert told["dollars"] == 50 and 10 <= told["spent"] < 10.1 and 39.9 < told["left"] <= 40
    assert abs(told["hours_left"] - told["left"] / 0.255) < 0.1
    said = cloud.cluster("cost", "demo").stdout
    assert re.search(r"\$10\.0\d of the budget of \$50\.00 are spent; \$(40\.00|39\.9\d) are left, for about 15\d\.\d h", said)
    up()
    assert wish(cloud)["budget"] == 50
    up("--budget", 0)
    assert "budget" not in wish(cloud) and cloud.json("cost", "demo")["budget"] is None


def test_a_budget_warns_once_and_then_ends_the_workers(cloud, up):
    up("--budget", 50)
    spent(cloud, 40.5)
    assert "$40.50 of the budget of $50.00 are spent" in cloud.cluster(*HEAL).stderr
    cloud.cluster(*HEAL)
    assert len(cloud.json("events", "demo")["events"]) == 1 and len(names(cloud)) == 3
    spent(cloud, 50.5, warned=True)
    said = cloud.cluster(*HEAL).stderr
    assert names(cloud) == ["head"] and "the head still runs and costs money" in said
    assert "the job was not stopped first, because of --no-head" in said
    cloud.cluster(*HEAL)
    assert names(cloud) == ["head"] and wish(cloud)["base"] == 2
    for words in (("up", "demo", "--yes"), ("add", "demo", 1, "--yes"), (*HEAL, "--budget", 45)):
        refused = cloud.cluster(*words, status=2).stderr
        assert "are spent" in refused and "--budget USD with more than that raises it" in refused
    cloud.cluster(*HEAL, "--budget", 90)
    assert names(cloud) == ["head", "w0001", "w0002"] and wish(cloud)["budget"] == 90


@pytest.mark.parametrize("saves,code,word", [(True, 75, "with"), (False, 1, "without")])
def test_a_spent_budget_stops_the_job_first(cloud, up, saves, code, word):
    up("--budget", 50)
    job = Job(cloud, words=("--model-prefix", "m/net") if saves else ())
    try:
        job.wait_for(lambda: "ADDED" in job.members().values(), "the first worker")
        spent(cloud, 60)
        said = cloud.cluster("watch", "demo", "--heal", "--here", "--job-dir", "job", "--once").stderr
        assert f"the job was stopped {word} a checkpoint; ended i-" in said and names(cloud) == ["head"]
        assert job.process.wait(PATIENCE) == code and "the budget is spent" in job.said()
    finally:
        job.stop()


def test_what_runs_and_what_ended_is_counted(cloud, up):
    up("--budget", 5)
    time.sleep(2)  # AWS says times in whole seconds
    cloud.ec2.terminate_instances(InstanceIds=[one["InstanceId"] for one in cloud.of_cluster("demo")])
    first = cloud.json("cost", "demo")["budget"]["spent"]
    time.sleep(2)
    assert first > 0 and cloud.json("cost", "demo")["budget"]["spent"] == first


def test_a_budget_of_cents_is_spent_by_what_runs(cloud, up):
    up("--budget", 0.0001)
    time.sleep(3)
    cloud.cluster(*HEAL)
    assert names(cloud) == ["head"]


def budget_meanwhile(cloud, action, dollars):
    """Another command sets a budget just before the first call of this action."""
    def before(exchange):
        if exchange.action == action:
            cloud.proxy.before_call = None
            set_tag(cloud, "dtrain:wish", json.dumps({**wish(cloud), "budget": dollars}))
    cloud.proxy.before_call = before


def test_a_budget_that_is_set_while_another_command_runs_stays(cloud, up):
    up()
    budget_meanwhile(cloud, "CreateFleet", 91)
    cloud.cluster("add", "demo", 2, "--yes", "--no-wait")
    assert wish(cloud) == {"schema": "dtrain.cluster-wish/1", "base": 2, "elastic": 2, "budget": 91}
    budget_meanwhile(cloud, "CreateTags", 92)  # the mark of the worker
    cloud.cluster("remove", "demo", "w0003", "--yes", "--force")
    assert wish(cloud)["budget"] == 92 and wish(cloud)["elastic"] == 1
    budget_meanwhile(cloud, "CreateFleet", 93)
    up(count=3)
    assert wish(cloud) == {"schema": "dtrain.cluster-wish/1", "base": 3, "elastic": 1, "budget": 93}
    gone = instance(cloud, "w0004")
    cloud.ec2.create_tags(Resources=[gone], Tags=[{"Key": "elastic_worker_status", "Value": "REMOVED"}])
    cloud.ec2.terminate_instances(InstanceIds=[gone])
    budget_meanwhile(cloud, "DescribeInstanceStatus", 94)
    cloud.cluster(*HEAL)
    assert wish(cloud) == {"schema": "dtrain.cluster-wish/1", "base": 3, "elastic": 0, "budget": 94}


@pytest.mark.parametrize("hours", [-5, 5])
def test_a_wrong_clock_of_the_keeper_changes_nothing(cloud, up, hours):
    """AWS's clock counts: an hour of these machines costs a quarter of a dollar."""
    up("--budget", 1)
    cloud.proxy.clock_skew = 3600 * hours
    cloud.proxy.forgives = {"RequestTimeTooSkewed", "SignatureDoesNotMatch", "RequestExpired"}

    def at_the_time_of_aws(exchange):
        answer = exchange.proxy.strict.answer(exchange)
        launched = time.strftime("%Y-%m-%dT%H:%M", time.gmtime(time.time() + cloud.proxy.clock_skew - 60))
        answer.body = re.sub(rb"<launchTime>[-0-9T:]{16}", f"<launchTime>{launched}".encode(), answer.body)
        return answer
    cloud.proxy.on("DescribeInstances", at_the_time_of_aws)
    held = []
    cloud.proxy.after_call = lambda exchange: held.append(lease_time(cloud)) if exchange.action == "CreateTags" else None
    said = cloud.cluster(*HEAL).stderr
    assert re.search(rf"clock is (5:00:0\d|4:59:5\d) {'behind' if hours > 0 else 'ahead of'} that of AWS", said)
    assert len(names(cloud)) == 3
    assert all(abs(at - time.time() - cloud.proxy.clock_skew) < 60 for at in held if at) and any(held)


def lease_time(cloud):
    return int(next((tag["Value"].split()[1] for tag in group(cloud)["Tags"] if tag["Key"] == "dtrain:healer"), 0))


def test_a_price_that_is_unknown_is_not_nothing(cloud, up):
    image = cloud.image()
    unknown = "r5.large"  # neither in dtrain's table nor, here, in a price list of AWS
    refused = cloud.cluster("up", "demo", "-w", 1, "--ami", image, "--instance-type", unknown, "--budget", 5, "--yes", status=2)
    assert f"the price of {unknown} is unknown" in refused.stderr and "--update-prices" in refused.stderr
    assert cloud.of_cluster("demo") == []
    up("--budget", 5)
    set_tag(cloud, "dtrain:spent", json.dumps({"schema": "dtrain.cluster-spent/1", "dollars": 0, "at": int(time.time()) + 60,
                                               "warned": False, "unpriced": ["x9.large"]}))
    said = cloud.cluster("cost", "demo").stdout
    assert "the price of x9.large is unknown" in said and "what is left is unknown" in said
    assert cloud.json("cost", "demo")["budget"]["left"] is None


def test_a_keeper_elsewhere_counts_with_the_prices_of_the_machine_that_set_the_budget(cloud):
    """The price list of the user's machine has the type; the head's home has none."""
    prices = pathlib.Path(cloud.environment["HOME"]) / ".cache/dtrain/prices"
    prices.mkdir(parents=True)
    (prices / "us-east-1.json").write_text(json.dumps({"schema": "dtrain.prices/1", "region": "us-east-1", "published": "2026-11-20",
                                                       "hourly": {"r5.large": 0.126}}))
    cloud.cluster("up", "demo", "-w", 1, "--ami", cloud.image(), "--instance-type", "r5.large", "--budget", 5, "--yes", "--no-wait")
    head = {"HOME": str(cloud.folder / "head")}
    time.sleep(2)
    cloud.run("cluster", *HEAL, **head)
    counted = json.loads(tags_of_group(cloud)["dtrain:spent"])
    assert counted["unpriced"] == [] and counted["dollars"] > 0
    assert tags_of_group(cloud)["dtrain:prices"] == "r5.large=0.126"
    cloud.run("cluster", *HEAL, "--budget", 6, **head)
    assert tags_of_group(cloud)["dtrain:prices"] == "r5.large=0.126" and wish(cloud)["budget"] == 6
    # What a keeper left that did not know the price.
    set_tag(cloud, "dtrain:spent", json.dumps({"schema": "dtrain.cluster-spent/1", "dollars": 0, "at": int(time.time()), "warned": False,
                                               "unpriced": ["r5.large"]}))
    told = cloud.json("cost", "demo")["budget"]
    assert told["unpriced"] == [] and told["spent"] >= counted["dollars"] and told["left"] < 6
    cloud.cluster("add", "demo", 1, "--yes", "--no-wait")


def test_a_budget_ends_the_workers_also_where_the_account_cannot_be_read(cloud, up):
    """As when the image, the reservation or the key of the options is gone."""
    up("--budget", 50)
    cloud.proxy.on("DescribeImages", error("InvalidAMIID.NotFound"))
    cloud.proxy.on("DescribeInstanceStatus", error("UnauthorizedOperation"))
    spent(cloud, 60)
    cloud.cluster(*HEAL)
    assert names(cloud) == ["head"]


def test_a_watch_goes_on_where_the_account_cannot_be_read(cloud, up):
    up("--budget", 50)
    spent(cloud, 40.5)
    lose(cloud, "w0002")
    cloud.proxy.on("DescribeImages", error("InvalidAMIID.NotFound"))
    said = cloud.cluster(*HEAL).stderr
    assert "machines are not started: " in said and "$40.50 of the budget of $50.00 are spent" in said
    assert names(cloud) == ["head", "w0001"]
    lose(cloud, "head")
    assert "machines are not started: " in cloud.cluster(*HEAL).stderr
    assert len(cloud.json("events", "demo")["events"]) == 1, "what cannot be done is no event at each look"
    cloud.proxy.plans.clear()
    cloud.cluster(*HEAL)
    cloud.cluster(*HEAL)
    assert names(cloud) == ["head", "w0001", "w0002"]


def test_spending_that_is_nonsense_ends_nothing(cloud, up):
    up("--budget", 5)
    set_tag(cloud, "dtrain:spent", "much")
    refused = cloud.cluster(*HEAL, status=None)
    assert refused.returncode != 0 and "dtrain:spent" in refused.stderr and "delete this tag" in refused.stderr
    assert len(names(cloud)) == 3


def test_a_budget_without_a_keeper_is_refused(cloud):
    assert "--budget is kept by --heal" in cloud.cluster("watch", "demo", "--budget", 5, status=2).stderr
    assert "no cluster demo" in cloud.cluster(*HEAL, "--budget", 5, status=2).stderr
    assert cloud.proxy.mutating() == []


def test_spot_requests_name_the_highest_price(cloud):
    asked = []

    def too_dear(exchange):
        lead = "LaunchTemplateConfigs.1.Overrides.1."
        asked.append((exchange.form["TargetCapacitySpecification.DefaultTargetCapacityType"], exchange.form.get(lead + "MaxPrice")))
        return error("SpotMaxPriceTooLow")(exchange) if asked[-1][0] == "spot" else None
    cloud.proxy.on("CreateFleet", too_dear)
    words = ("up", "demo", "-w", 1, "--ami", cloud.image(), *UP, "--max-price", 0.04)
    assert "--max-price is for spot instances" in cloud.cluster(*words, status=2).stderr
    assert "which takes those above 0.001" in cloud.cluster(*words, "--max-price", 0.0001, "--spot", "only", status=2).stderr
    assert cloud.proxy.mutating() == []
    cloud.cluster(*words, "--spot", "prefer")
    assert ("spot", "0.04") in asked and asked[-1] == ("on-demand", None) and cloud.node_names("demo") == ["head", "w0001"]
    cloud.cluster("up", "demo", "--max-price", 0.06, "--yes", "--no-wait")
    cloud.cluster("add", "demo", 1, "--yes", "--no-wait")
    assert ("spot", "0.06") in asked
    cloud.cluster("down", "demo", "--yes")
    cloud.proxy.plans.clear()
    heads = []
    cloud.proxy.on("RunInstances", lambda exchange: heads.append(exchange.form.get("InstanceMarketOptions.SpotOptions.MaxPrice")))
    cloud.cluster(*words, "--spot", "only")
    assert heads == ["0.04"]


def test_a_keeper_says_that_spot_prices_cannot_be_read(cloud, up):
    """Spot machines then count at the price on demand."""
    up("--budget", 50)
    cloud.proxy.on("DescribeInstances", on_spot)
    cloud.proxy.on("DescribeSpotPriceHistory", spot_prices(a="0.03"), calls=[1])
    assert "spot prices" not in cloud.cluster(*HEAL).stderr
    cloud.proxy.on("DescribeSpotPriceHistory", error("UnauthorizedOperation", status=403))
    said = cloud.cluster(*HEAL).stderr
    assert "spot prices are not known: " in said and "UnauthorizedOperation" in said


@pytest.mark.parametrize("dollars", ["-1", "much"])
def test_a_budget_that_is_no_amount_is_refused(cloud, dollars):
    assert "--budget" in cloud.cluster("up", "demo", f"--budget={dollars}", "--yes", status=2).stderr
    assert cloud.proxy.count() == 0


# By day.

def test_cost_by_day_holds_what_aws_lists_and_says_what_it_does_not(cloud, up):
    up()
    told = cloud.json("cost", "demo")["by_day"]
    assert len(told["days"]) in (1, 2) and told["dollars_before"] is None and told["unknown_end"] == []
    assert 0 <= sum(day["machine_hours"] for day in told["days"]) < 1 and told["days"][0]["unpriced"] == []
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", told["days"][0]["day"])
    said = cloud.cluster("cost", "demo", "--by-day")
    lines = said.stdout.splitlines()
    assert lines[0].split() == ["DAY", "(UTC)", "MACHINE", "HOURS", "COST"] and lines[1].split() == ["earlier", "unknown", "unknown"]
    assert told["days"][0]["day"] in lines[2] and "more than an hour ago" in said.stderr


def test_a_day_of_spot_machines_that_ended_has_the_spot_price(cloud, up):
    up()
    time.sleep(2)  # AWS says times in whole seconds
    lose(cloud, "head", "w0001", "w0002")
    cloud.proxy.on("DescribeInstances", on_spot)
    cloud.proxy.on("DescribeSpotPriceHistory", spot_prices(a="360000"))  # a hundred dollars a second
    assert sum(day["dollars"] for day in cloud.json("cost", "demo")["by_day"]["days"]) >= 100


def test_a_stop_writes_down_what_a_start_lets_aws_forget(cloud, up):
    up("--budget", 50)
    spent(cloud, 7.0)
    cloud.cluster("stop", "demo", "--yes", "--no-head")
    cloud.cluster("start", "demo", "--yes", "--no-wait")
    told = cloud.json("cost", "demo")
    assert told["by_day"]["dollars_before"] == pytest.approx(7.0, abs=0.1) and told["budget"]["spent"] == pytest.approx(7.0, abs=0.1)
    assert "$7.0" in cloud.cluster("cost", "demo", "--by-day").stdout.splitlines()[1]


def test_a_day_of_unknown_price_is_no_day_of_nothing(cloud):
    cloud.cluster("up", "demo", "-w", 1, "--instance-type", "x1e.32xlarge", "--ami", cloud.image(), "--yes", "--no-wait")
    days = cloud.json("cost", "demo")["by_day"]["days"]
    assert [(day["dollars"], day["unpriced"]) for day in days] == [(None, ["x1e.32xlarge"])] * len(days)
    assert "an unknown price (x1e.32xlarge)" in cloud.cluster("cost", "demo", "--by-day").stdout
