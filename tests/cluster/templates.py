"""What a launch template says, as the fields of a call: EC2 fills a call with them, where moto takes only some. And private
addresses, which moto does not give again."""

import re

from account import client_of

PLAIN = ("ImageId", "InstanceType", "KeyName", "UserData", "InstanceInitiatedShutdownBehavior")
OF_INTERFACE = ("SubnetId", "PrivateIpAddress", "AssociatePublicIpAddress", "InterfaceType", "DeviceIndex", "DeleteOnTermination")


def data_of(address, region, identity, version="$Default"):
    ec2 = client_of(f"http://{address}", "ec2", region)
    return ec2.describe_launch_template_versions(LaunchTemplateId=identity, Versions=[version])["LaunchTemplateVersions"][0][
        "LaunchTemplateData"]


def fields_of(data):
    """{field of RunInstances: value}"""
    fields = {name: str(data[name]) for name in PLAIN if name in data}
    for number, group in enumerate(data.get("SecurityGroupIds", []), 1):
        fields[f"SecurityGroupId.{number}"] = group
    for interface in data.get("NetworkInterfaces", [])[:1]:
        fields |= {f"NetworkInterface.1.{name}": str(interface[name]) for name in OF_INTERFACE if name in interface}
        fields |= {f"NetworkInterface.1.SecurityGroupId.{number}": group for number, group in enumerate(interface.get("Groups", []), 1)}
    for number, device in enumerate(data.get("BlockDeviceMappings", []), 1):
        if "KmsKeyId" in device.get("Ebs", {}):
            lead = f"BlockDeviceMapping.{number}."
            fields[lead + "DeviceName"] = device["DeviceName"]
            fields |= {f"{lead}Ebs.{name}": str(value) for name, value in device["Ebs"].items()}
    if "IamInstanceProfile" in data:
        fields["IamInstanceProfile.Name"] = data["IamInstanceProfile"]["Name"]
    if "Placement" in data and data["Placement"].get("GroupName"):
        fields["Placement.GroupName"] = data["Placement"]["GroupName"]
    if data.get("InstanceMarketOptions"):
        fields["InstanceMarketOptions.MarketType"] = data["InstanceMarketOptions"]["MarketType"]
    return fields


class Launches:
    """Of single instances. `addresses`: {instance: the private address that it was asked to have}."""

    def made_by(self, exchange, answer):
        """The instances of an answer to RunInstances."""
        ids = re.findall(rb"<(?:\w+:)?instanceId>(i-[0-9a-f]+)<", answer.body)
        return self.ec2(exchange).describe_instances(InstanceIds=[identity.decode() for identity in ids])["Reservations"][0]["Instances"]

    def fill_from_template(self, exchange):
        own = exchange.form.get("LaunchTemplate.LaunchTemplateId")
        if own:
            named = fields_of(data_of(self.account, exchange.region, own, exchange.form.get("LaunchTemplate.Version", "$Default")))
            exchange.set_form(**{name: value for name, value in named.items() if name not in exchange.form})

    def take_address(self, exchange):
        """The requested address, which moto does not know as free again after its machine has ended."""
        fields = [name for name in ("PrivateIpAddress", "NetworkInterface.1.PrivateIpAddress") if name in exchange.form]
        address = exchange.form[fields[0]] if fields else None
        exchange.set_form(**{name: None for name in fields})
        return address

    def take_address_filter(self, exchange):
        """moto knows other addresses: it is asked for the machine that has this one."""
        for name, value in list(exchange.form.items()):
            if name.endswith(".Name") and value == "private-ip-address":
                number = name.removesuffix(".Name")
                having = self.has_address(exchange, exchange.form[f"{number}.Value.1"]) or ["i-00000000000000000"]
                exchange.set_form(**{name: "instance-id", f"{number}.Value.1": having[0]})

    def has_address(self, exchange, address):
        pages = self.ec2(exchange).describe_instances()["Reservations"]
        return [one["InstanceId"] for page in pages for one in page["Instances"] if not self.is_gone(one) and
                self.addresses.get(one["InstanceId"], one.get("PrivateIpAddress")) == address]
