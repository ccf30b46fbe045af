"""An AWS account for one test, behind the proxy, and dtrain as a user runs it."""

import base64
import json
import os
import pathlib
import subprocess

from account import REGION, client_of

KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true"}
DROPPED = ("AWS_", "DTRAIN_CLUSTER", "WORKER_LAUNCH_TEMPLATE_ID", "ELASTIC_WORKER_TAG")
UP = ("--instance-type", "c5.large", "--yes", "--no-wait")  # options of a small cluster
SECRETS = ("AWS_SECRET_ACCESS_KEY=test", "session-token", "temporary")
# Verbs that ask the head. Outside of the lab the addresses that moto makes up may belong to other machines.
LOOKS = () if "DTRAIN_CLUSTER_LAB" in os.environ else ("status", "health", "stop")
LIVE = ("pending", "running", "stopping", "stopped", "shutting-down")


class Cloud:
    """`proxy`: counts and faults (proxy.py, faults.py). `ec2`, `efs`: the account itself, past the proxy."""

    def __init__(self, proxy, account_url, folder, program):
        self.proxy, self.account_url, self.folder, self.program = proxy, account_url, pathlib.Path(folder), program
        self.ec2, self.efs = self.client("ec2"), self.client("efs")
        home = self.folder / "home"
        home.mkdir()
        kept = {name: value for name, value in os.environ.items() if not name.startswith(DROPPED)}
        self.environment = {**kept, **KEYS, "AWS_ENDPOINT_URL": proxy.url, "HOME": str(home), "NO_COLOR": "1"}

    def client(self, service, region=REGION):
        return client_of(self.account_url, service, region)

    def image(self):
        """An existing image."""
        return self.ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]

    def stranger_at(self, address):
        """A machine that belongs to no cluster gets the address."""
        made = self.ec2.run_instances(ImageId=self.image(), InstanceType="c5.large", MinCount=1, MaxCount=1)["Instances"][0]
        self.proxy.strict.addresses[made["InstanceId"]] = address

    # dtrain.

    def start(self, *words, streams=subprocess.PIPE, **environment):
        return subprocess.Popen([self.program, *map(str, words)], env={**self.environment, **environment}, cwd=self.folder,
                                stdin=subprocess.DEVNULL, stdout=streams, stderr=streams, text=True)

    def run(self, *words, status=0, **environment):
        """Runs a command and checks its exit code; None: any."""
        process = self.start(*words, **environment)
        try:
            out, err = process.communicate(timeout=300)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            raise AssertionError(f"dtrain {words}: no end\n{out}{err}") from None
        assert status is None or process.returncode == status, f"dtrain {words}: exit {process.returncode}\n{out}{err}"
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def cluster(self, *words, status=0):
        alone = ["--no-head"] if words[0] in LOOKS and "--no-head" not in words else []
        return self.run("cluster", *words, *alone, status=status)

    def json(self, *words, status=0):
        return json.loads(self.cluster(*words, "--json", status=status).stdout)

    # What there is.

    def instances(self, *filters):
        """The instances that are not terminated, as boto3 describes them."""
        pages = self.ec2.get_paginator("describe_instances").paginate(Filters=list(filters))
        found = [instance for page in pages for reservation in page["Reservations"] for instance in reservation["Instances"]]
        for instance in found:
            instance["PrivateIpAddress"] = self.proxy.strict.addresses.get(instance["InstanceId"], instance.get("PrivateIpAddress"))
        return [instance for instance in found if instance["State"]["Name"] in LIVE]

    def user_data(self, instance):
        """The text that the instance boots with."""
        value = self.ec2.describe_instance_attribute(InstanceId=instance, Attribute="userData")["UserData"].get("Value", "")
        return base64.b64decode(value).decode()

    def of_cluster(self, name):
        return self.instances({"Name": "tag:dtrain:cluster", "Values": [name]})

    def node_names(self, name):
        return sorted(self.tags(one["InstanceId"]).get("dtrain:node", "unnamed") for one in self.of_cluster(name))

    def tags(self, resource):
        """{key: value}"""
        found = self.ec2.describe_tags(Filters=[{"Name": "resource-id", "Values": [resource]}])["Tags"]
        return {tag["Key"]: tag["Value"] for tag in found}

    def sweep(self, name):
        """Resources that carry the cluster's tag and are not terminated: none after `down`."""
        filters = [{"Name": "tag:dtrain:cluster", "Values": [name]}]
        ended = {instance["InstanceId"] for reservation in self.ec2.describe_instances(Filters=filters)["Reservations"]
                 for instance in reservation["Instances"] if instance["State"]["Name"] == "terminated"}
        tagged = self.ec2.describe_tags(Filters=[{"Name": "key", "Values": ["dtrain:cluster"]},
                                                 {"Name": "value", "Values": [name]}])["Tags"]
        storage = [system["FileSystemId"] for system in self.efs.describe_file_systems()["FileSystems"]
                   if {"Key": "dtrain:cluster", "Value": name} in system["Tags"]]
        return [tag["ResourceId"] for tag in tagged if tag["ResourceId"] not in ended] + storage
