"""A head that is lost for good while the laptop is off, on machines: a worker starts it again with the rights of its role, the
new one finds dtrain, the queue and the job in the shared folder, and the job goes on."""

import json
import os

import pytest

if "DTRAIN_CLUSTER_LAB" not in os.environ:
    pytest.skip("machines need namespaces: tests/cluster/run.sh makes them", allow_module_level=True)

from machines import lab  # noqa: E402
from policy import policy_of  # noqa: E402
from test_head_guard import HEAD_ROLE, WORKER_ROLE, group_tags, heads, rights  # noqa: E402
from test_jobs import QUEUE, expect_calm_bits, give, saved  # noqa: E402
from test_site import agents, laptop, private  # noqa: E402, F401


def sooner(machine):
    """`up` takes no patience of less than two minutes."""
    machine.run("sh", "-c", 'sed -i \'s/"replace_head_after": *[0-9]*/"replace_head_after":8/\' /opt/dtrain/node.json; '
                            "pkill -f 'agent --guar[d]'")


@pytest.mark.slow
def test_a_cluster_survives_its_head_without_the_laptop(laptop):  # noqa: F811
    cloud, machines, epochs = laptop.cloud, laptop.machines, 150
    machines.reach(cloud.proxy.url)
    nodes = private(laptop.up("-w", 2, "--heal")["nodes"])
    cloud.proxy.policies = {key: policy_of(json.dumps(rights(cloud, role)), cloud.proxy.account)
                            for key, role in (("ASIAHEAD", HEAD_ROLE), ("ASIAWORKER", WORKER_ROLE))}
    give(cloud, laptop.training, "--elastic", "--elastic-boundary", "step", epochs=epochs)
    laptop.wait_for(lambda: saved() >= 1, "it trains")
    for name in ("w0001", "w0002"):
        sooner(machines.find(nodes[name]))
    [lost] = heads(cloud)
    cloud.ec2.terminate_instances(InstanceIds=[lost["InstanceId"]])
    laptop.wait_for(lambda: not machines.find(lost["InstanceId"]), "the head is gone")
    # As time does, after two minutes: the head that was lost kept the cluster.
    group = cloud.ec2.describe_security_groups(Filters=[{"Name": "tag:dtrain:cluster", "Values": ["demo"]}])["SecurityGroups"][0]
    cloud.ec2.create_tags(Resources=[group["GroupId"]], Tags=[{"Key": "dtrain:healer", "Value": "- 0"}])
    laptop.wait_for(lambda: heads(cloud) and machines.find(heads(cloud)[0]["InstanceId"]), "a worker started another head")
    [head] = heads(cloud)
    assert head["InstanceId"] != lost["InstanceId"] and head["PrivateIpAddress"] == nodes["head"]
    assert any("w0001 started" in value for key, value in group_tags(cloud).items() if key.startswith("dtrain:event:"))
    there = machines.find(head["InstanceId"])
    laptop.wait_for(lambda: "ready" in there.log(), "the new head found dtrain in the shared folder")
    machines.wait_for(lambda: not group_tags(cloud)["dtrain:healer"].startswith("- "), "the new head keeps the cluster")
    laptop.wait_for(lambda: json.loads((QUEUE / "0001/state.json").read_text())["state"] == "done", "the job is done")
    assert set(agents(cloud.json("status", "demo")).values()) == {"registered"}
    assert len(heads(cloud)) == 1 and (lab.SHARED / ".dtrain/demo").is_dir()
    expect_calm_bits(laptop, epochs)
