"""What a cluster may cost: `--max-price` of spot instances."""

from cloud import UP
from faults import error


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
