"""What machines a region has and what they cost; clusters in all regions; the user's own tags."""

import csv
import io

import pytest
from cloud import UP
from faults import Answer, error

PRICE_LIST = "/offers/v1.0/aws/AmazonEC2/current/{}/index.csv"
COLUMNS = ("SKU", "TermType", "Unit", "PricePerUnit", "Currency", "Instance Type", "Tenancy", "Operating System",
           "CapacityStatus", "Pre Installed S/W")


def price_list(**dollars):
    """A Price List file as AWS publishes it: a head, then a row for each kind of each type."""
    text = io.StringIO()
    rows = csv.writer(text, quoting=csv.QUOTE_ALL)
    rows.writerows([("FormatVersion", "v1.0"), ("Publication Date", "2026-11-20T18:01:02Z"), COLUMNS])
    for name, price in dollars.items():
        kind = name.replace("_", ".")
        for system, tenancy, term, factor in (("Windows", "Shared", "OnDemand", 2), ("Linux", "Dedicated", "OnDemand", 3),
                                              ("Linux", "Shared", "Reserved", 0.5), ("Linux", "Shared", "OnDemand", 1)):
            rows.writerow(("X", term, "Hrs", price * factor, "USD", kind, tenancy, system, "Used", "NA"))
    return lambda exchange: Answer(200, text.getvalue(), "text/csv")


def listed(cloud, *words):
    return {one["type"]: one for one in cloud.json("types", *words)["types"]}


def test_types_say_what_trains_and_what_does_not(cloud):
    types = listed(cloud, "--all")
    assert types["g5.xlarge"]["trains"] and types["g5.xlarge"]["compute_capability"] == "8.6"
    assert types["g5.xlarge"]["dollars_per_hour"] == 1.006 and types["g5.xlarge"]["zones"]
    assert not types["g4dn.xlarge"]["trains"] and "a T4, has compute capability 7.5" in types["g4dn.xlarge"]["why_not"]
    assert "g4dn.xlarge" not in listed(cloud)
    assert all(one["gpus"] >= 4 for one in listed(cloud, "--gpus", 4).values())
    cloud.proxy.on("DescribeSpotPriceHistory", error("UnauthorizedOperation", status=403))  # moto's are next to nothing
    said = cloud.cluster("types", "--gpus", 1, "--max-price", 1.1).stdout
    assert "g5.xlarge" in said and "g5.2xlarge" not in said and "$0.0000" not in said
    assert cloud.proxy.mutating() == []


def test_an_unknown_price_is_never_nothing(cloud):
    types = listed(cloud, "--all")
    unknown = [name for name, one in types.items() if one["dollars_per_hour"] is None]
    assert unknown and all(one["dollars_per_hour"] != 0 for one in types.values())
    line = next(line for line in cloud.cluster("types", "--all").stdout.splitlines() if line.startswith(unknown[0] + " "))
    assert "unknown" in line
    assert unknown[0] not in listed(cloud, "--all", "--max-price", 1000) or types[unknown[0]]["spot_dollars_per_hour"]


def test_quotas_and_spot_prices_that_may_not_be_read_are_unknown(cloud):
    cloud.proxy.on("DescribeSpotPriceHistory", error("UnauthorizedOperation", status=403))
    cloud.proxy.on("GetServiceQuota", error("AccessDeniedException", status=403))
    told = cloud.json("types")
    assert "UnauthorizedOperation" in told["spot_why_not"]
    assert all(one["quota_machines_left"] is None and one["spot_dollars_per_hour"] is None for one in told["types"])


def test_a_quota_is_less_by_what_runs(cloud, up):
    cloud.proxy.on("GetServiceQuota", lambda exchange: Answer(
        200, '{"Quota": {"Value": 20.0}}', "application/x-amz-json-1.1"))
    cloud.cluster("up", "demo", "-w", 1, "--ami", cloud.image(), *UP)  # two c5.large: four vCPUs of "standard"
    one = listed(cloud, "--gpus", 0)["c5.xlarge"]
    assert (one["quota"], one["quota_vcpus_left"], one["quota_machines_left"]) == ("standard", 16, 4)


def test_the_price_list_of_a_region_is_kept_for_all_commands(cloud):
    path = PRICE_LIST.format("eu-west-1")
    cloud.proxy.on("GET " + path, price_list(c5_large=0.5, g5_xlarge=1.25))
    plan = ("plan", "demo", "-w", 1, "--instance-type", "c5.large", "--ami", cloud.image(), "--region", "eu-west-1")
    before = cloud.cluster(*plan)
    assert "$0.17 an hour on demand" in before.stdout and "the prices are those of us-east-1" in before.stderr
    said = cloud.cluster("types", "--region", "eu-west-1", "--update-prices")
    assert "$1.2500" in said.stdout and "prices of eu-west-1, published 2026-11-20" in said.stderr
    assert cloud.proxy.count("GET " + path) == 1
    after = cloud.cluster(*plan)
    assert "$1.00 an hour on demand" in after.stdout and "those of us-east-1" not in after.stderr
    assert cloud.proxy.count("GET " + path) == 1
    kept = list((cloud.folder / "home" / ".cache" / "dtrain" / "prices").iterdir())
    assert [file.name for file in kept] == ["eu-west-1.json"]
    kept[0].write_text("{")
    assert "$0.17 an hour" in cloud.cluster(*plan).stdout


def test_a_consent_and_a_budget_say_once_that_the_prices_are_of_another_region(cloud):
    far, warning = ("--region", "eu-west-1"), "the prices are those of us-east-1; dtrain cluster types --region eu-west-1"
    up = ("up", "demo", "-w", 1, "--instance-type", "c5.large", "--ami", cloud.image(), "--budget", 50, *far)
    said = cloud.cluster(*up, status=2).stderr
    assert said.count(warning) == 1 and said.index(warning) < said.index("create it, for")
    cloud.cluster(*up, "--yes", "--no-wait")
    said = cloud.cluster("add", "demo", 1, *far, status=2).stderr
    assert said.count(warning) == 1 and said.index(warning) < said.index("start 1 more, for")
    cloud.cluster("stop", "demo", "--yes", "--no-head", *far)
    said = cloud.cluster("start", "demo", *far, status=2).stderr
    assert said.count(warning) == 1 and said.index(warning) < said.index("start 2 machines, for")
    assert warning in cloud.cluster("watch", "demo", "--heal", "--once", "--no-head", "--budget", 60, *far, status=None).stderr
    near = cloud.cluster("up", "other", "-w", 1, "--instance-type", "c5.large", "--ami", cloud.image(), status=2).stderr
    assert "create it, for" in near and "the prices are those of" not in near


@pytest.mark.parametrize("answer,why", [(Answer(200, '"SKU","TermType"\n'), "no column"),
                                        (Answer(404, "none"), "404")])
def test_a_price_list_that_cannot_be_had_changes_nothing(cloud, answer, why):
    cloud.proxy.on("GET " + PRICE_LIST.format("us-east-1"), lambda exchange: answer)
    said = cloud.cluster("types", "--update-prices", status=None)
    assert said.returncode in (1, 4) and why in said.stderr
    assert listed(cloud)["g5.xlarge"]["dollars_per_hour"] == 1.006


def test_the_clusters_of_all_regions_are_listed(cloud):
    image = cloud.image()
    cloud.cluster("up", "near", "-w", 1, "--ami", image, *UP)
    far = cloud.client("ec2", "eu-west-1")
    far.run_instances(ImageId=image, InstanceType="c5.large", MinCount=1, MaxCount=1, TagSpecifications=[
        {"ResourceType": "instance", "Tags": [{"Key": "dtrain:cluster", "Value": "far"}]}])
    told = cloud.json("list", "--all-regions")
    assert {(one["name"], one["region"]) for one in told["clusters"]} == {("near", "us-east-1"), ("far", "eu-west-1")}
    assert len(told["regions"]) > 5 and told["unknown"] == []
    assert [one["name"] for one in cloud.json("list")["clusters"]] == ["near"]
    assert "eu-west-1" in cloud.cluster("list", "--all-regions").stdout


def test_a_region_that_refuses_is_named(cloud):
    def refuse(exchange):
        return error("UnauthorizedOperation", status=403)(exchange) if exchange.region == "eu-west-3" else exchange.forward()
    cloud.proxy.on("DescribeInstances", refuse)
    told = cloud.json("list", "--all-regions", status=3)
    assert [one["region"] for one in told["unknown"]] == ["eu-west-3"]


def test_the_users_tags_are_on_all_resources(cloud, up):
    up("--shared", "efs", "--tag", "project=birds,team=a:b", "--tag", "cost-centre=7")
    wanted = {"project": "birds", "team": "a:b", "cost-centre": "7"}
    resources = [resource for resource in cloud.sweep("demo") if not resource.startswith("fs-")]
    assert len(resources) >= 6
    for resource in resources:
        assert wanted.items() <= cloud.tags(resource).items(), resource
    system = cloud.efs.describe_file_systems()["FileSystems"][0]
    assert wanted.items() <= {tag["Key"]: tag["Value"] for tag in system["Tags"]}.items()
    assert "is up to date" in up("--shared", "efs").stdout
    cloud.cluster("add", "demo", 1, "--yes", "--no-wait")
    assert all(wanted.items() <= cloud.tags(one["InstanceId"]).items() for one in cloud.of_cluster("demo"))
    cloud.cluster("down", "demo", "--yes", "--delete-storage")
    assert cloud.sweep("demo") == []


@pytest.mark.parametrize("text,why", [("birds", "no ="), ("dtrain:node=x", "uses this key"), ("Name=x", "uses this key"),
                                      ("a b=c", "its key"), ("k=" + "x" * 300, "longer than 256")])
def test_a_tag_that_cannot_be_is_refused(cloud, text, why):
    said = cloud.cluster("plan", "demo", "--tag", text, status=2)
    assert why in said.stderr and cloud.proxy.count() == 0


def test_a_misspelt_instance_type_gets_the_one_that_was_meant(cloud):
    said = cloud.cluster("plan", "demo", "-w", 1, "--instance-type", "c5.lrage", "--ami", cloud.image(), status=2).stderr
    assert "region us-east-1 has no instance type c5.lrage" in said
    assert "did you mean c5.large?" in said and "dtrain cluster types --region us-east-1" in said
