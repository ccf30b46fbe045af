"""Stacks as the predecessors' CloudFormation templates make them, reduced to what `cluster adopt` reads: a network, a master and
workers in Auto Scaling groups, groups of theirs, and a file system."""

import json

ANYWHERE = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "CidrIp": "0.0.0.0/0"}
INSIDE = {"IpProtocol": "tcp", "FromPort": 0, "ToPort": 65535, "CidrIp": "10.0.0.0/16"}


def ref(name):
    return {"Ref": name}


def group(description, rule):
    return {"Type": "AWS::EC2::SecurityGroup",
            "Properties": {"GroupDescription": description, "VpcId": ref("Vpc"), "SecurityGroupIngress": [rule]}}


def machines(role, image, kind, key):
    """The templates have launch configurations; moto starts machines without key pairs from those."""
    data = {"ImageId": image, "InstanceType": kind, "SecurityGroupIds": [ref(f"{role}SecurityGroup")]}
    return {"Type": "AWS::EC2::LaunchTemplate", "Properties": {"LaunchTemplateData": data | ({"KeyName": key} if key else {})}}


def scaling(role, subnet, least, wanted):
    return {"Type": "AWS::AutoScaling::AutoScalingGroup",
            "Properties": {"MinSize": str(least), "MaxSize": str(max(wanted, 1)), "DesiredCapacity": str(wanted),
                           "LaunchTemplate": {"LaunchTemplateId": ref(f"{role}LaunchConfig"), "Version": "1"}, "VPCZoneIdentifier": [ref(subnet)],
                           "Tags": [{"Key": "NodeType", "Value": role, "PropagateAtLaunch": True},
                                    {"Key": "Name", "Value": f"old-{role}", "PropagateAtLaunch": True}]}}


def template(image, workers, kind="c5.large", key="mine", masters=1, groups=True):
    subnet = {"Type": "AWS::EC2::Subnet"}
    resources = {
        "Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}},
        "PublicSubnet": {**subnet, "Properties": {"VpcId": ref("Vpc"), "CidrBlock": "10.0.0.0/24", "MapPublicIpOnLaunch": True,
                                                  "AvailabilityZone": "us-east-1a"}},
        "PrivateSubnet": {**subnet, "Properties": {"VpcId": ref("Vpc"), "CidrBlock": "10.0.1.0/24",
                                                   "AvailabilityZone": "us-east-1a"}},
        "MasterSecurityGroup": group("Master", ANYWHERE), "WorkerSecurityGroup": group("Worker", INSIDE),
        "MountTargetSecurityGroup": group("mount target", INSIDE),
        "FileSystem": {"Type": "AWS::EFS::FileSystem", "DeletionPolicy": "Retain", "Properties": {}},
        "MountTarget": {"Type": "AWS::EFS::MountTarget",
                        "Properties": {"FileSystemId": ref("FileSystem"), "SubnetId": ref("PrivateSubnet"),
                                       "SecurityGroups": [ref("MountTargetSecurityGroup")]}}}
    if groups:
        resources |= {
            "MasterLaunchConfig": machines("Master", image, kind, key),
            "WorkerLaunchConfig": machines("Worker", image, kind, key),
            "MasterAutoScalingGroup": scaling("Master", "PublicSubnet", masters, masters),
            "WorkerAutoScalingGroup": scaling("Worker", "PrivateSubnet", 0, workers)}
    return {"AWSTemplateFormatVersion": "2010-09-09", "Resources": resources,
            "Parameters": {"EFSMountPoint": {"Type": "String", "Default": "myEFSvolume"}},
            "Outputs": {"Mount": {"Value": ref("EFSMountPoint")}}}


class OldStack:
    """A stack of the account `cloud`, past the proxy."""

    def __init__(self, cloud, name="old", workers=2, **how):
        self.cloud, self.name = cloud, name
        self.stacks, self.scaling = cloud.client("cloudformation"), cloud.client("autoscaling")
        if how.get("key", "mine") and not cloud.ec2.describe_key_pairs()["KeyPairs"]:
            cloud.ec2.create_key_pair(KeyName="mine")
        self.stacks.create_stack(StackName=name, TemplateBody=json.dumps(template(cloud.image(), workers, **how)))
        # moto gives the machines of a group no public address, and would choose one of the loopback network.
        for number, master in enumerate(self.machines("Master")):
            address = cloud.ec2.allocate_address(Domain="vpc", Address=f"54.214.255.{number + 1}")
            cloud.ec2.associate_address(InstanceId=master, AllocationId=address["AllocationId"])

    def physical(self, logical):
        return self.stacks.describe_stack_resource(StackName=self.name, LogicalResourceId=logical)["StackResourceDetail"]["PhysicalResourceId"]

    def group(self, role):
        return self.scaling.describe_auto_scaling_groups(AutoScalingGroupNames=[self.physical(f"{role}AutoScalingGroup")])["AutoScalingGroups"][0]

    def suspended(self, role):
        return {one["ProcessName"] for one in self.group(role)["SuspendedProcesses"]}

    def machines(self, role=None):
        return {one["InstanceId"]: one for one in self.cloud.instances(
            {"Name": "tag:NodeType", "Values": [role] if role else ["Master", "Worker"]},
            {"Name": "tag-key", "Values": ["aws:autoscaling:groupName"]})}

    def state(self):
        """All that adoption may change."""
        kept = {}
        for identity, one in self.machines().items():
            kept[identity] = (sorted(group["GroupId"] for group in one["SecurityGroups"]), sorted(
                (tag["Key"], tag["Value"]) for tag in one["Tags"]), one["State"]["Name"])
        for role in ("Master", "Worker"):
            group = self.group(role)
            kept[role] = (group["MinSize"], group["DesiredCapacity"], sorted(self.suspended(role)))
        target = self.cloud.efs.describe_mount_targets(FileSystemId=self.physical("FileSystem"))["MountTargets"][0]["MountTargetId"]
        kept["mount target"] = self.cloud.efs.describe_mount_target_security_groups(MountTargetId=target)["SecurityGroups"]
        return kept


def without_launches(cloud):
    """moto starts another machine for one that a group lost, also where that process is suspended; AWS does not."""
    scaling = cloud.client("autoscaling")

    def before(exchange):
        if exchange.action != "TerminateInstances":
            return
        ids = [value for field, value in exchange.form.items() if field.startswith("InstanceId.")]
        for one in scaling.describe_auto_scaling_instances(InstanceIds=ids)["AutoScalingInstances"]:
            name = one["AutoScalingGroupName"]
            group = scaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"][0]
            assert "Launch" in {process["ProcessName"] for process in group["SuspendedProcesses"]}
            scaling.detach_instances(InstanceIds=[one["InstanceId"]], AutoScalingGroupName=name, ShouldDecrementDesiredCapacity=True)
    cloud.proxy.before_call = before
