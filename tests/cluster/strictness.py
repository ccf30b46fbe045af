"""Rules of AWS that moto lacks: client tokens, the number of instances of a request, capacity, fleets, states that take
time, which instances stop and start, private addresses, launch templates of single instances, capacity reservations, security
groups in use, placement groups, and names of images."""

import re
import threading
import time
import xml.etree.ElementTree as ET

from account import client_of
from faults import Answer, refusal
from lustre import Lustre
from reservations import NAMESPACE, RESERVATION, Reservations
from templates import Launches

TOKENED = ("RunInstances", "CreateFleet", "CreateLaunchTemplate", "CreateLaunchTemplateVersion")
STATES = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopping": 64, "stopped": 80}
IMAGES = ("/aws/service/deeplearning/", "/aws/service/canonical/", "/aws/service/ami-amazon-linux-latest/")


class Strictness(Reservations, Launches, Lustre):
    """`capacity`: {(type, zone): instances left}, where a key is missing there are enough; either may be "*".
    `polls`: how often an instance is seen pending before it runs, stopping before it is stopped, and shutting down before it
    is terminated."""

    def __init__(self, account):
        self.account, self.lock = account, threading.RLock()
        self.answered, self.seen, self.groups = {}, {}, {}
        self.capacity, self.polls = {}, 0
        self.started = {}  # instance -> when it was started again
        self.reservations, self.versions = {}, {}
        self.lustre, self.lustre_looks = {}, 2
        self.addresses = {}  # instance -> the private address that it was asked to have

    def answer(self, exchange):
        if exchange.service == "fsx":
            return self.answer_fsx(exchange)
        rule = getattr(self, exchange.action, None) if exchange.service in ("ec2", "ssm") else None
        if not rule:
            return exchange.forward()
        with self.lock:
            if exchange.action in TOKENED:
                return self.once(exchange, rule)
            return rule(exchange)

    def ec2(self, exchange):
        return client_of(f"http://{self.account}", "ec2", exchange.region)

    # A repeated call with the same token takes effect once.

    def once(self, exchange, rule):
        token = exchange.form.get("ClientToken")
        if not token:
            return rule(exchange)
        key, fields = (exchange.region, exchange.action, token), dict(exchange.form)
        if key in self.answered:
            asked, answer = self.answered[key]
            if asked != fields:
                return refusal(exchange, "IdempotentParameterMismatch", "the token belongs to another request")
            if exchange.action == "RunInstances" and self.made_by(exchange, answer)[0]["State"]["Name"] == "terminated":
                return refusal(exchange, "IdempotentInstanceTerminated", "the token is associated with a terminated instance")
            return answer
        answer = rule(exchange)
        if answer.status == 200:
            self.answered[key] = fields, answer
        return answer

    def CreateLaunchTemplate(self, exchange):
        return exchange.forward()

    # Capacity limits instances.

    def left(self, kind, zone):
        return min([count for (a, b), count in self.capacity.items() if a in ("*", kind) and b in ("*", zone)], default=1 << 30)

    def take(self, kind, zone, count):
        for key in self.capacity:
            if key[0] in ("*", kind) and key[1] in ("*", zone):
                self.capacity[key] -= count

    def zone_of(self, exchange, subnet):
        if not subnet:
            return "*"
        return self.ec2(exchange).describe_subnets(SubnetIds=[subnet])["Subnets"][0]["AvailabilityZone"]

    def RunInstances(self, exchange):
        self.fill_from_template(exchange)
        address = self.take_address(exchange)
        if address and self.has_address(exchange, address):
            return refusal(exchange, "InvalidIPAddress.InUse", f"Address {address} is in use.")
        form = exchange.form
        kind = form.get("InstanceType", "*")
        zone = form.get("Placement.AvailabilityZone") or self.zone_of(
            exchange, form.get("SubnetId") or form.get("NetworkInterface.1.SubnetId"))
        count = min(int(form["MaxCount"]), self.left(kind, zone))
        if count < int(form["MinCount"]):
            return refusal(exchange, "InsufficientInstanceCapacity", f"no {kind} in {zone}", 500)
        if RESERVATION in form:
            why = self.reserve(form[RESERVATION], kind, zone, count)
            if why:
                return refusal(exchange, why, f"{form[RESERVATION]} has no {kind} in {zone}")
        exchange.set_form(MinCount=count, MaxCount=count)
        answer = exchange.forward()
        if answer.status == 200:
            self.take(kind, zone, count)
            if address:
                self.addresses[self.made_by(exchange, answer)[0]["InstanceId"]] = address
            answer.body = self.states_as_seen(answer.body)
        return answer

    def CreateFleet(self, exchange):
        form = exchange.form
        total = int(form["TargetCapacitySpecification.TotalTargetCapacity"])
        spot = form.get("TargetCapacitySpecification.DefaultTargetCapacityType") == "spot"
        options = "SpotOptions" if spot else "OnDemandOptions"
        least = int(form.get(f"{options}.MinTargetCapacity", 0))
        chosen, errors = self.choose(exchange, total, form.get(f"{options}.SingleAvailabilityZone") == "true",
                                     form.get(f"{options}.SingleInstanceType") == "true")
        if sum(count for _, count in chosen) < max(least, 1):
            chosen = []
        code, reserved = "InsufficientInstanceCapacity", self.reservation_of(exchange)
        if reserved and (reserved not in self.reservations or "OnDemandOptions.CapacityReservationOptions.UsageStrategy" not in form):
            return refusal(exchange, "InvalidCapacityReservationId.NotFound", f"{reserved} is not there, or is not to be used first")
        if reserved and chosen:
            why = self.reserve(reserved, chosen[0][0]["InstanceType"], chosen[0][0]["zone"], chosen[0][1])
            if why:
                code, errors, chosen = why, [chosen[0][0]], []
        items = "".join(self.launch(exchange, pool, count, spot) for pool, count in chosen)
        failures = "".join(
            f"<item><launchTemplateAndOverrides>{overrides(pool)}</launchTemplateAndOverrides>"
            f"<lifecycle>{'spot' if spot else 'on-demand'}</lifecycle><errorCode>{code}</errorCode>"
            f"<errorMessage>no {pool['InstanceType']} in {pool['zone']}</errorMessage></item>" for pool in errors)
        return Answer(200, f'<CreateFleetResponse xmlns="{NAMESPACE}"><requestId>fleet-request</requestId>'
                           f"<fleetId>fleet-{len(self.answered):08d}-test</fleetId><errorSet>{failures}</errorSet>"
                           f"<fleetInstanceSet>{items}</fleetInstanceSet></CreateFleetResponse>")

    def choose(self, exchange, total, one_zone, one_kind):
        """[(pool, count)] by the order of the request, and the pools that had too few."""
        chosen, errors, left = [], [], total
        for pool in self.pools(exchange):
            if left == 0:
                break
            if chosen and (one_zone and chosen[0][0]["zone"] != pool["zone"] or
                           one_kind and chosen[0][0]["InstanceType"] != pool["InstanceType"]):
                continue
            count = min(left, self.left(pool["InstanceType"], pool["zone"]))
            if count < left:
                errors.append(pool)
            if count > 0:
                chosen.append((pool, count))
                left -= count
        return chosen, errors

    def pools(self, exchange):
        form, found = exchange.form, []
        prefix = "LaunchTemplateConfigs.{}.Overrides.{}."
        template = self.template(exchange)
        for config in range(1, 50):
            for number in range(1, 300):
                lead = prefix.format(config, number)
                pool = {name.removeprefix(lead): value for name, value in form.items() if name.startswith(lead)}
                if not pool:
                    break
                pool.setdefault("InstanceType", template.get("InstanceType", ""))
                pool["zone"] = pool.get("AvailabilityZone") or self.zone_of(exchange, pool.get("SubnetId"))
                found.append(pool)
        return sorted(found, key=lambda pool: float(pool.get("Priority", 0)))

    def template(self, exchange):
        lead = "LaunchTemplateConfigs.1.LaunchTemplateSpecification."
        form = exchange.form
        name = {key: form[lead + key] for key in ("LaunchTemplateId", "LaunchTemplateName") if lead + key in form}
        versions = self.ec2(exchange).describe_launch_template_versions(
            **name, Versions=[self.source_of(form)[0]])["LaunchTemplateVersions"]
        return versions[0]["LaunchTemplateData"]

    def launch(self, exchange, pool, count, spot):
        ec2, form, profile = self.ec2(exchange), exchange.form, self.template(exchange).get("IamInstanceProfile")
        lead = "LaunchTemplateConfigs.1.LaunchTemplateSpecification."
        template = {key: form[lead + key] for key in ("LaunchTemplateId", "LaunchTemplateName") if lead + key in form}
        template["Version"] = self.source_of(form)[0]
        words = {"SubnetId": pool["SubnetId"]} if "SubnetId" in pool else {}
        if spot:
            words["InstanceMarketOptions"] = {"MarketType": "spot"}
        reply = ec2.run_instances(LaunchTemplate=template, MinCount=count, MaxCount=count,
                                  InstanceType=pool["InstanceType"], **words)
        ids = [instance["InstanceId"] for instance in reply["Instances"]]
        for identity in ids if profile else ():  # moto gives it to the first one, and to none by a template
            ec2.associate_iam_instance_profile(IamInstanceProfile={"Name": profile["Name"]}, InstanceId=identity)
        tags = fleet_tags(form)
        if tags:
            ec2.create_tags(Resources=ids, Tags=tags)
        self.take(pool["InstanceType"], pool["zone"], count)
        items = "".join(f"<item>{identity}</item>" for identity in ids)
        return (f"<item><launchTemplateAndOverrides>{overrides(pool)}</launchTemplateAndOverrides>"
                f"<lifecycle>{'spot' if spot else 'on-demand'}</lifecycle><instanceIds>{items}</instanceIds>"
                f"<instanceType>{pool['InstanceType']}</instanceType></item>")

    # States take time: an instance is pending, and later shutting down, for `polls` looks.

    def DescribeInstances(self, exchange):
        states = self.take_state_filter(exchange)
        self.take_address_filter(exchange)
        answer = exchange.forward()
        if answer.status == 200:
            answer.body = self.states_as_seen(answer.body, states)
        return answer

    TerminateInstances = DescribeInstances

    # A call that stops or starts instances does so with all of them or with none.

    def StopInstances(self, exchange):
        for instance in self.named(exchange):
            identity = instance["InstanceId"]
            if instance.get("InstanceLifecycle") == "spot":
                return refusal(exchange, "UnsupportedOperation", f"You can't stop the Spot Instance '{identity}' because it is "
                                                                 "associated with a one-time Spot Instance request.")
            if self.shown(identity, instance["State"]["Name"], look=False) == "pending":
                return between(exchange, identity, "stopped")
        answer = exchange.forward()
        return self.seen_anew(exchange, answer)

    def StartInstances(self, exchange):
        wanted = self.named(exchange)
        for instance in wanted:
            if self.shown(instance["InstanceId"], instance["State"]["Name"], look=False) == "stopping":
                return between(exchange, instance["InstanceId"], "started")
        for instance in wanted:
            kind, zone = instance["InstanceType"], instance["Placement"]["AvailabilityZone"]
            if self.left(kind, zone) < 1:
                return refusal(exchange, "InsufficientInstanceCapacity", f"no {kind} in {zone} for {instance['InstanceId']}", 500)
            self.take(kind, zone, 1)
        for instance in wanted:
            self.started[instance["InstanceId"]] = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
        return self.seen_anew(exchange, exchange.forward())

    def named(self, exchange):
        """The instances that the call names and that are there."""
        ids = [value for field, value in exchange.form.items() if field.startswith("InstanceId")]
        pages = self.ec2(exchange).describe_instances(Filters=[{"Name": "instance-id", "Values": ids}])["Reservations"]
        return [instance for page in pages for instance in page["Instances"]]

    def seen_anew(self, exchange, answer):
        for instance in self.named(exchange) if answer.status == 200 else ():
            self.seen = {key: looks for key, looks in self.seen.items() if key[0] != instance["InstanceId"]}
        return answer

    def take_state_filter(self, exchange):
        """The requested states. moto has others than are shown, so it is asked for all."""
        for number in range(1, 20):
            if exchange.form.get(f"Filter.{number}.Name") == "instance-state-name":
                lead = f"Filter.{number}.Value."
                wanted = [value for name, value in exchange.form.items() if name.startswith(lead)]
                exchange.set_form(**({name: None for name in exchange.form if name.startswith(lead)} |
                                     {f"{lead}{place}": state for place, state in enumerate(STATES, 1)}))
                return wanted
        return None

    def states_as_seen(self, body, wanted=None):
        ET.register_namespace("", NAMESPACE)
        tree = ET.fromstring(body.replace(b'2016-11-15"', b'2016-11-15/"'))  # AWS's name space
        for holder in list(tree.iter()):
            for item in list(holder):
                identity = item.find(f"{{{NAMESPACE}}}instanceId")
                state = next((item.find(f"{{{NAMESPACE}}}{name}") for name in ("instanceState", "currentState")
                              if item.find(f"{{{NAMESPACE}}}{name}") is not None), None)
                if identity is None or state is None:
                    continue
                launched = item.find(f"{{{NAMESPACE}}}launchTime")
                if launched is not None and identity.text in self.started:
                    launched.text = self.started[identity.text]
                own = item.find(f"{{{NAMESPACE}}}privateIpAddress")
                if own is not None and identity.text in self.addresses:
                    own.text = self.addresses[identity.text]
                shown = self.shown(identity.text, state.find(f"{{{NAMESPACE}}}name").text)
                state.find(f"{{{NAMESPACE}}}name").text = shown
                state.find(f"{{{NAMESPACE}}}code").text = str(STATES[shown])
                if wanted is not None and shown not in wanted:
                    holder.remove(item)
        for holder in tree.iter(f"{{{NAMESPACE}}}reservationSet"):
            for reservation in [item for item in holder if not len(item.find(f"{{{NAMESPACE}}}instancesSet"))]:
                holder.remove(reservation)
        return ET.tostring(tree, xml_declaration=True, encoding="UTF-8")

    def shown(self, identity, state, look=True):
        before = {"running": "pending", "terminated": "shutting-down", "stopped": "stopping"}.get(state)
        if not before:
            return state
        looks = self.seen.get((identity, state), 0) + 1
        if look:
            self.seen[identity, state] = looks
        return before if looks <= self.polls else state

    def is_gone(self, instance):
        identity, state = instance["InstanceId"], instance["State"]["Name"]
        return state == "terminated" and self.seen.get((identity, state), 0) >= self.polls

    # A resource in use cannot be deleted.

    def DeleteSecurityGroup(self, exchange):
        group = exchange.form.get("GroupId")
        for reservation in self.ec2(exchange).describe_instances()["Reservations"]:
            for instance in reservation["Instances"]:
                if group in [entry["GroupId"] for entry in instance["SecurityGroups"]] and not self.is_gone(instance):
                    return refusal(exchange, "DependencyViolation", f"{group} has {instance['InstanceId']} in it")
        if group in self.groups_of_mount_targets(exchange):
            return refusal(exchange, "DependencyViolation", f"{group} has a mount target in it")
        if group in self.groups_of_lustre():
            return refusal(exchange, "DependencyViolation", f"{group} has a file system of FSx in it")
        return exchange.forward()

    def groups_of_mount_targets(self, exchange):
        efs = client_of(f"http://{self.account}", "efs", exchange.region)
        found = []
        for system in efs.describe_file_systems()["FileSystems"]:
            for target in efs.describe_mount_targets(FileSystemId=system["FileSystemId"])["MountTargets"]:
                found += efs.describe_mount_target_security_groups(MountTargetId=target["MountTargetId"])["SecurityGroups"]
        return found

    def DeleteKeyPair(self, exchange):
        """Removes its tags with it."""
        ec2 = self.ec2(exchange)
        identity = exchange.form.get("KeyPairId") or identity_of_key(ec2, exchange.form["KeyName"])
        tags = ec2.describe_tags(Filters=[{"Name": "resource-id", "Values": [identity]}])["Tags"]
        if tags:
            ec2.delete_tags(Resources=[identity], Tags=[{"Key": tag["Key"]} for tag in tags])
        return exchange.forward()

    # Calls that moto lacks.

    def CreatePlacementGroup(self, exchange):
        name = exchange.form["GroupName"]
        if name in self.groups:
            return refusal(exchange, "InvalidPlacementGroup.Duplicate")
        tags = [(exchange.form[key], exchange.form.get(key[:-3] + "Value", "")) for key in sorted(exchange.form)
                if re.fullmatch(r"TagSpecification\.1\.Tag\.\d+\.Key", key)]
        self.groups[name] = tags
        return Answer(200, f'<CreatePlacementGroupResponse xmlns="{NAMESPACE}"><return>true</return>'
                           f"<placementGroup>{placement_group(name, tags)}</placementGroup></CreatePlacementGroupResponse>")

    def DescribePlacementGroups(self, exchange):
        items = "".join(f"<item>{placement_group(name, tags)}</item>" for name, tags in self.groups.items())
        return Answer(200, f'<DescribePlacementGroupsResponse xmlns="{NAMESPACE}"><placementGroupSet>{items}'
                           "</placementGroupSet></DescribePlacementGroupsResponse>")

    def DeletePlacementGroup(self, exchange):
        if self.groups.pop(exchange.form["GroupName"], None) is None:
            return refusal(exchange, "InvalidPlacementGroup.Unknown")
        return Answer(200, f'<DeletePlacementGroupResponse xmlns="{NAMESPACE}"><return>true</return>'
                           "</DeletePlacementGroupResponse>")

    def GetParameter(self, exchange):
        name = exchange.json()["Name"]
        if not name.startswith(IMAGES):
            return exchange.forward()
        images = self.ec2(exchange).describe_images(Owners=["amazon"])["Images"]
        return Answer(200, '{"Parameter": {"Name": "%s", "Type": "String", "Value": "%s", "Version": 1}}'
                      % (name, images[0]["ImageId"]), "application/x-amz-json-1.1")


def between(exchange, identity, word):
    return refusal(exchange, "IncorrectInstanceState", f"The instance '{identity}' is not in a state from which it can be {word}.")


def identity_of_key(ec2, name):
    answer = ec2.describe_key_pairs(Filters=[{"Name": "key-name", "Values": [name]}])
    return next((entry["KeyPairId"] for entries in answer.values() if isinstance(entries, list) for entry in entries), "")


def overrides(pool):
    words = {"instanceType": pool.get("InstanceType"), "subnetId": pool.get("SubnetId"), "availabilityZone": pool["zone"]}
    return "<overrides>" + "".join(f"<{key}>{value}</{key}>" for key, value in words.items() if value) + "</overrides>"


def fleet_tags(form):
    tags = []
    for number in range(1, 10):
        if form.get(f"TagSpecification.{number}.ResourceType") == "instance":
            lead = f"TagSpecification.{number}.Tag."
            for name in [name for name in form if name.startswith(lead) and name.endswith(".Key")]:
                tags.append({"Key": form[name], "Value": form.get(name[:-3] + "Value", "")})
    return tags


def placement_group(name, tags):
    items = "".join(f"<item><key>{key}</key><value>{value}</value></item>" for key, value in tags)
    return (f"<groupName>{name}</groupName><strategy>cluster</strategy><state>available</state>"
            f"<groupId>pg-{name}</groupId><tagSet>{items}</tagSet>")
