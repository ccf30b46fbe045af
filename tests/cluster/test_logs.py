"""`cluster logs` of machines that have ended, such as a node that failed its boot: EC2 keeps their console output for an hour."""

import pytest
from faults import Answer, refusal

BOOT = "Linux version"  # moto's console output begins with it
EMPTY = Answer(200, '<GetConsoleOutputResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><output/></GetConsoleOutputResponse>')


def end(cloud, node):
    """As a node ends itself after a failed boot; its id."""
    identity = next(one["InstanceId"] for one in cloud.of_cluster("demo") if cloud.tags(one["InstanceId"])["dtrain:node"] == node)
    cloud.ec2.terminate_instances(InstanceIds=[identity])
    return identity


@pytest.fixture
def ended(cloud, up):
    up()
    return end(cloud, "w0002")


def test_a_node_that_failed_its_boot_has_its_console_output(cloud, ended):
    for node in ("w0002", ended):
        said = cloud.cluster("logs", "demo", node)
        assert said.stdout.startswith(BOOT) and f"w0002 ({ended}) has ended" in said.stderr


def test_of_several_nodes_of_a_name_the_latest_is_shown(cloud, up, ended):
    up()
    later = end(cloud, "w0002")
    cloud.proxy.strict.started[later] = "2100-01-01T00:00:00.000Z"
    assert f"w0002 ({later}) has ended" in cloud.cluster("logs", "demo", "w0002").stderr
    assert f"w0002 ({ended}) has ended" in cloud.cluster("logs", "demo", ended).stderr


def test_a_type_without_the_latest_output_has_the_kept_one(cloud, ended):
    cloud.proxy.on("GetConsoleOutput", lambda exchange: refusal(
        exchange, "UnsupportedOperation", "This instance type does not support retrieving the latest console logs.")
        if "Latest" in exchange.form else None)
    assert cloud.cluster("logs", "demo", "w0002").stdout.startswith(BOOT)


def test_output_that_is_not_there_yet_is_said(cloud, ended):
    cloud.proxy.on("GetConsoleOutput", lambda exchange: EMPTY)
    said = cloud.cluster("logs", "demo", "w0002", status=None)
    assert said.returncode != 0 and f"no console output of w0002 ({ended}) yet" in said.stderr


def test_a_node_that_ec2_does_not_list_is_refused(cloud, ended):
    assert "cluster demo has no node w0042" in cloud.cluster("logs", "demo", "w0042", status=2).stderr
