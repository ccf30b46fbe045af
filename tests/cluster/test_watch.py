"""The synchronisation of instance tags with the hosts of a job, which the job's coordinator starts itself. There are no
machines here: the job's hosts are names for processes of this one."""

import pathlib
import signal
import time

import pytest
from faults import error, page

ELASTIC = "demo-aws-dl-cfn-elastic-worker"
VARIABLES = {"WORKER_LAUNCH_TEMPLATE_ID": "lt-0123", "ELASTIC_WORKER_TAG": ELASTIC}
TRAIN = ("--network", "resnet", "--num-layers", 8, "--width", 4, "--lr", 0.02, "--global-batch", 32, "--logical-shards", 8,
         "--threads", 1, "--launcher", "local", "-n", 1, "--elastic", "--elastic-boundary", "step", "--num-epochs", 100000)
PATIENCE = 240  # seconds, on a busy machine


class Job:
    """An elastic job on this machine; its output is in `log`."""

    def __init__(self, cloud, words=(), **variables):
        self.cloud, self.folder, self.log = cloud, cloud.folder / "job", cloud.folder / "log"
        cloud.run("data", "prepare", "shapes", "--out", "d", "--train-count", 120, "--val-count", 30)
        with open(self.log, "wb") as log:
            self.process = cloud.start("train", *TRAIN, *words, "--data-train", "d/shapes_train.rec", "--data-val", "d/shapes_val.rec",
                                       "--job-dir", "job", streams=log, **variables)

    def said(self):
        return self.log.read_text()

    def members(self):
        """The latest entry of the member log for each host."""
        log = self.folder / "host_worker_log"
        lines = log.read_text().splitlines() if log.exists() else []
        return {line.split()[2]: line.split()[1] for line in lines}

    def wait_for(self, condition, what):
        end = time.monotonic() + PATIENCE
        while not condition():
            assert self.process.poll() is None, f"the job ended: {self.said()}"
            assert time.monotonic() < end, f"{what}: not within {PATIENCE} s: {self.members()}\n{self.said()}"
            time.sleep(0.1)

    def stop(self):
        if self.process.poll() is None:
            self.cloud.run("stop", "--job-dir", "job", status=None)
        return self.process.wait(PATIENCE)


@pytest.fixture
def job(cloud):
    jobs = []

    def start(**variables):
        jobs.append(Job(cloud, **variables))
        jobs[-1].wait_for(lambda: "ADDED" in jobs[-1].members().values(), "the first worker")
        return jobs[-1]
    yield start
    for one in jobs:
        one.stop()


def launched(cloud):
    """A machine like one launched in the console from the cluster's template: (instance, address)."""
    tags = {"dtrain:cluster": "demo", "dtrain:role": "worker", ELASTIC: ""}
    made = cloud.ec2.run_instances(ImageId=cloud.image(), InstanceType="c5.large", MinCount=1, MaxCount=1, TagSpecifications=[
        {"ResourceType": "instance", "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}])["Instances"][0]
    return made["InstanceId"], made["PrivateIpAddress"]


def watchers(folder):
    """Processes that watch for the job in that folder."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().decode().split("\0") if entry.name.isdigit() else []
        except OSError:
            continue
        if "watch" in words and str(folder) in words:
            found.append(int(entry.name))
    return found


def test_a_job_follows_the_tags_of_its_cluster_by_itself(cloud, job):
    instance, address = launched(cloud)
    running = job(**VARIABLES)
    status = lambda: cloud.tags(instance).get("elastic_worker_status")  # noqa: E731
    running.wait_for(lambda: running.members().get(address) == "ADDED" and status() == "ADDED", "it joins by its tag")
    cloud.ec2.delete_tags(Resources=[instance], Tags=[{"Key": ELASTIC}])
    running.wait_for(lambda: status() == "REMOVED" and cloud.of_cluster("demo") == [], "it leaves by its tag, and is ended")
    assert running.members()[address] == "REMOVED"
    assert len(watchers(running.folder)) == 1
    running.stop()
    assert watchers(running.folder) == []


def test_a_job_goes_on_without_aws_and_follows_the_tags_once_it_is_back(cloud, job):
    instance, address = launched(cloud)
    cloud.proxy.on("*", error("UnauthorizedOperation"))
    running = job(**VARIABLES)
    running.wait_for(lambda: cloud.proxy.count() > 1 and "cannot be read at the moment" in running.said(), "it says so, and asks again")
    assert "UnauthorizedOperation" in running.said() and list(running.members().values()) == ["ADDED"]
    cloud.proxy.plans.clear()
    running.wait_for(lambda: running.members().get(address) == "ADDED", "it joins")
    running.wait_for(lambda: "can be read again" in running.said(), "it says so")
    assert running.said().count("cannot be read at the moment") == 1


@pytest.mark.slow
def test_a_job_needs_no_credentials_to_go_on(job):
    running = job(**VARIABLES, AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY="")
    running.wait_for(lambda: "cannot be read at the moment" in running.said(), "it says so")
    assert list(running.members().values()) == ["ADDED"]


@pytest.mark.slow
@pytest.mark.parametrize("variables,said", [({"WORKER_LAUNCH_TEMPLATE_ID": "lt-0123"}, ""),
                                            ({**VARIABLES, "ELASTIC_WORKER_TAG": "theirs"}, "no tags are followed")])
def test_a_job_of_no_cluster_asks_nobody(cloud, job, variables, said):
    running = job(**variables)
    assert said in running.said() and watchers(running.folder) == [] and cloud.proxy.count() == 0


def test_a_watch_that_is_older_than_its_timeout_still_repeats_calls_that_failed(cloud, up):
    up(count=0)
    process = cloud.start("cluster", "watch", "demo", "--here", "--every", 1, "--timeout", 8)

    def looks(count):
        wanted, end = cloud.proxy.count("DescribeInstances") + count, time.monotonic() + PATIENCE
        while cloud.proxy.count("DescribeInstances") < wanted and time.monotonic() < end:
            time.sleep(0.1)
    looks(1)
    time.sleep(9)
    cloud.proxy.on("DescribeInstances", page(503), calls=[1, 4])
    looks(6)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == -signal.SIGINT and "cannot be read" not in said
