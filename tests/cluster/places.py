"""One account in three regions, for clusters that may be in any of them."""

from cloud import UP

A, B, C = "us-east-1", "eu-west-1", "us-west-2"
ALL = ",".join((A, B, C))
WORDS = ("-w", 2, *UP)


class Places:
    """The account in several regions, past the proxy."""

    def __init__(self, cloud):
        self.cloud = cloud
        self.ec2 = {region: cloud.client("ec2", region) for region in (A, B, C)}

    def none_in(self, *regions):
        """There is no capacity in them."""
        for region in regions:
            for zone in self.ec2[region].describe_availability_zones()["AvailabilityZones"]:
                self.cloud.proxy.strict.capacity["*", zone["ZoneName"]] = 0

    def machines(self, region):
        pages = self.ec2[region].describe_instances(Filters=[{"Name": "tag:dtrain:cluster", "Values": ["demo"]}, {
            "Name": "instance-state-name", "Values": ["pending", "running", "stopped"]}])["Reservations"]
        return [one for page in pages for one in page["Instances"]]

    def left(self, region):
        """What carries the tag of the cluster."""
        ended = [one["InstanceId"] for page in self.ec2[region].describe_instances()["Reservations"] for one in page["Instances"]
                 if one["State"]["Name"] == "terminated"]
        tagged = self.ec2[region].describe_tags(Filters=[{"Name": "key", "Values": ["dtrain:cluster"]}])["Tags"]
        systems = self.cloud.client("efs", region).describe_file_systems()["FileSystems"]
        roles = [one["RoleName"] for one in self.cloud.client("iam").list_roles()["Roles"] if one["RoleName"].endswith((region, region + "-w"))]
        return [one["ResourceId"] for one in tagged if one["ResourceId"] not in ended] + [
            one["FileSystemId"] for one in systems] + roles

    def calls(self, region, action=None):
        return [one.action for one in self.cloud.proxy.calls if one.region == region and one.is_mutating() and action in (None, one.action)]
