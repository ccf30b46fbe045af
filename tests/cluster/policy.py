"""Refuses each call that an IAM policy does not allow, as AWS does: action, resource and conditions of its statements, for
what the calls of dtrain name. It knows the actions and conditions that policies of dtrain hold, and fails for others. It does
not show that AWS evaluates a policy like this, and S3 is not behind the proxy."""

import fnmatch
import json
import re

from account import client_of
from faults import refusal
from templates import data_of, fields_of

# IAM lets everybody ask who he is, and roles are assumed before a policy counts.
FREE = ("sts:GetCallerIdentity", "sts:AssumeRole", "sts:AssumeRoleWithWebIdentity")
DENIED = {"ec2": ("UnauthorizedOperation", 403), "iam": ("AccessDenied", 403)}
KINDS = {"i": "instance", "sg": "security-group", "lt": "launch-template", "vol": "volume", "subnet": "subnet", "ami": "image",
         "vpc": "vpc", "key": "key-pair", "cr": "capacity-reservation"}
# Actions of EC2 that name their resource in another way than by its id.
NAMED = {"DeleteKeyPair": ("KeyName", "key-pair"), "DeletePlacementGroup": ("GroupName", "placement-group")}
MAKES = {"CreateSecurityGroup": "security-group", "CreateLaunchTemplate": "launch-template", "ImportKeyPair": "key-pair",
         "CreatePlacementGroup": "placement-group"}
ID = re.compile(r"(i|sg|lt|vol|subnet|ami|vpc|key|cr)-[0-9a-z]+$")


class Needed:
    """One right: an action on a resource, and the keys of its conditions."""

    def __init__(self, action, resource="*", **keys):
        self.action, self.resource, self.keys = action, resource, keys

    def __str__(self):
        return f"{self.action} on {self.resource} with {self.keys}"


def tags_as_keys(kind, tags):
    return {f"aws:{kind}Tag/{key}": value for key, value in tags.items()}


class Policy:
    def __init__(self, document, account):
        self.statements, self.account = document["Statement"], account
        assert document["Version"] == "2012-10-17" and all(one["Effect"] == "Allow" for one in self.statements)

    def client(self, service, region):
        return client_of(f"http://{self.account}", service, region)

    def refusal(self, exchange):
        """(the right that is missing, the answer); None: the call is allowed."""
        for right in self.needed(exchange):
            if right.action not in FREE and not self.allows(right, exchange.region):
                code, status = DENIED.get(exchange.service, ("AccessDeniedException", 400))
                said = f"User: arn:aws:iam::123456789012:user/test is not authorized to perform: {right}"
                return right, refusal(exchange, code, said, status)
        return None

    # Statements.

    def allows(self, right, region):
        return any(self.fits(one, right, region) for one in self.statements)

    def fits(self, statement, right, region):
        return (any(fnmatch.fnmatchcase(right.action, one) for one in listed(statement["Action"])) and
                any(fnmatch.fnmatchcase(right.resource, one) for one in listed(statement["Resource"])) and
                all(holds(comparison, right.keys.get(key, region if key == "aws:RequestedRegion" else None), listed(values))
                    for comparison, keys in statement.get("Condition", {}).items() for key, values in keys.items()))

    # The rights that a call needs.

    def needed(self, exchange):
        by_service = {"ec2": self.of_ec2, "iam": self.of_iam, "elasticfilesystem": self.of_efs,
                      "elasticmapreduce": self.of_emr, "ssm": self.of_ssm, "kms": self.of_kms, "fsx": self.of_fsx}
        if exchange.service in by_service:
            return by_service[exchange.service](exchange)
        return [Needed(f"{exchange.service}:{exchange.action}")]

    @staticmethod
    def arn(exchange, kind, name):
        return f"arn:aws:ec2:{exchange.region}:{'' if kind in ('image', 'snapshot') else '123456789012'}:{kind}/{name}"

    def of_ec2(self, exchange):
        action = exchange.action
        if action == "RunInstances":
            return self.of_machines(exchange, exchange.form, requested_tags(exchange.form), "RunInstances")
        if action == "CreateFleet":
            return self.of_fleet(exchange)
        if action in MAKES:
            return self.of_making(exchange, MAKES[action])
        if action.startswith("Describe"):
            return [Needed(f"ec2:{action}")]
        return self.of_changing(exchange)

    def of_making(self, exchange, kind):
        arn, tags = self.arn(exchange, kind, "new"), requested_tags(exchange.form).get(kind, {})
        rights = [Needed(f"ec2:{exchange.action}", arn, **tags_as_keys("Request", tags))]
        if "VpcId" in exchange.form:
            rights.append(Needed(f"ec2:{exchange.action}", self.arn(exchange, "vpc", exchange.form["VpcId"])))
        return rights + tagging(arn, tags, exchange.action)

    def of_changing(self, exchange):
        """Of each resource that the call names; what is not there is found missing by EC2."""
        action, form = exchange.action, exchange.form
        if action in NAMED:
            field, kind = NAMED[action]
            tags = self.tags_by_name(exchange, kind, form[field])
            return [] if tags is None else [Needed(f"ec2:{action}", self.arn(exchange, kind, form[field]),
                                                   **tags_as_keys("Resource", tags))]
        lead = re.compile(r"(InstanceId|ResourceId|GroupId|LaunchTemplateId)(\.\d+)?$")
        keys = [value for field, value in form.items() if re.fullmatch(r"Tag\.\d+\.Key", field)]
        requested = {key: form.get(field[:-3] + "Value", "") for field, key in form.items() if re.fullmatch(r"Tag\.\d+\.Key", field)}
        rights = []
        for name in [value for field, value in form.items() if lead.match(field)]:
            tags = self.tags_of(exchange, name)
            if tags is not None:
                rights.append(Needed(f"ec2:{action}", self.arn(exchange, KINDS[name.split("-")[0]], name),
                                     **tags_as_keys("Resource", tags), **({"aws:TagKeys": keys} if keys else {}),
                                     **(tags_as_keys("Request", requested) if action == "CreateTags" else {})))
        return rights

    def tags_of(self, exchange, identity):
        ec2 = self.client("ec2", exchange.region)
        found = ec2.describe_tags(Filters=[{"Name": "resource-id", "Values": [identity]}])["Tags"]
        if found:
            return {tag["Key"]: tag["Value"] for tag in found}
        looks = {"i": lambda: ec2.describe_instances(InstanceIds=[identity]),
                 "sg": lambda: ec2.describe_security_groups(GroupIds=[identity]),
                 "lt": lambda: ec2.describe_launch_templates(LaunchTemplateIds=[identity])}
        try:
            looks[identity.split("-")[0]]()
            return {}
        except (KeyError, ec2.exceptions.ClientError):
            return None

    def tags_by_name(self, exchange, kind, name):
        if kind == "placement-group":
            found = exchange.proxy.strict.groups.get(name)
            return None if found is None else dict(found)
        ec2 = self.client("ec2", exchange.region)
        pairs = ec2.describe_key_pairs(Filters=[{"Name": "key-name", "Values": [name]}])["KeyPairs"]
        return {tag["Key"]: tag["Value"] for tag in pairs[0].get("Tags", [])} if pairs else None

    def of_machines(self, exchange, form, tags, made_by):
        """Of RunInstances, with the fields of the call and of a launch template. What the call names itself is not of the
        template."""
        own = form.get("LaunchTemplate.LaunchTemplateId")
        named = dict(form)
        if own:
            form = fields_of(data_of(self.account, exchange.region, own)) | form
        by = {"ec2:LaunchTemplate": self.arn(exchange, "launch-template", own)} if own else {}

        def keys(fields):
            return by | {"ec2:IsLaunchTemplateResource": "false" if set(fields) & set(named) or not own else "true"}
        rights = [Needed("ec2:RunInstances", self.arn(exchange, kind, "new"), **tags_as_keys("Request", tags.get(kind, {})), **keys([]))
                  for kind in ("instance", "volume")]
        rights.append(Needed("ec2:RunInstances", self.arn(exchange, "network-interface", "new"), **keys(
            [field for field in form if field.startswith("NetworkInterface.")])))
        for field, value in form.items():
            match = ID.match(value)
            if match and not field.startswith("TagSpecification"):
                kind, known = KINDS[match[1]], None
                if kind in ("security-group", "launch-template"):
                    known = self.tags_of(exchange, value)
                rights.append(Needed("ec2:RunInstances", self.arn(exchange, kind, value), **tags_as_keys("Resource", known or {}),
                                     **keys([field])))
            if field in ("KeyName", "Placement.GroupName"):
                kind = "key-pair" if field == "KeyName" else "placement-group"
                rights.append(Needed("ec2:RunInstances", self.arn(exchange, kind, value), **keys([field])))
            if field.endswith(".Ebs.KmsKeyId"):
                rights += use_of_key(value, "ec2", exchange.region)
            if field == "IamInstanceProfile.Name":
                rights += self.passing(value, "ec2.amazonaws.com")
        for kind, of_kind in tags.items():
            rights += tagging(self.arn(exchange, kind, "new"), of_kind, made_by)
        return rights

    def of_fleet(self, exchange):
        template, fields = exchange.proxy.strict.template(exchange), {}
        own = exchange.form["LaunchTemplateConfigs.1.LaunchTemplateSpecification.LaunchTemplateId"]
        fields["LaunchTemplateId"], fields["ImageId"] = own, template["ImageId"]
        fields["SubnetId"] = exchange.form["LaunchTemplateConfigs.1.Overrides.1.SubnetId"]
        groups = template.get("SecurityGroupIds") or template["NetworkInterfaces"][0]["Groups"]
        fields |= {f"SecurityGroupId.{number}": group for number, group in enumerate(groups, 1)}
        if template.get("KeyName"):
            fields["KeyName"] = template["KeyName"]
        if template.get("IamInstanceProfile"):
            fields["IamInstanceProfile.Name"] = template["IamInstanceProfile"]["Name"]
        tags = {one["ResourceType"]: {tag["Key"]: tag["Value"] for tag in one["Tags"]}
                for one in template.get("TagSpecifications", [])}
        for kind, more in requested_tags(exchange.form).items():
            tags[kind] = tags.get(kind, {}) | more
        fields |= {field: value for field, value in fields_of(template).items() if field.startswith("BlockDeviceMapping.")}
        return [Needed("ec2:CreateFleet")] + self.of_machines(exchange, fields, tags, "CreateFleet")

    def passing(self, profile, service):
        iam = self.client("iam", "us-east-1")
        try:
            roles = iam.get_instance_profile(InstanceProfileName=profile)["InstanceProfile"]["Roles"]
        except iam.exceptions.NoSuchEntityException:
            return []
        return [Needed("iam:PassRole", role["Arn"], **{"iam:PassedToService": service}) for role in roles]

    def of_iam(self, exchange):
        action, form, iam = f"iam:{exchange.action}", exchange.form, self.client("iam", "us-east-1")
        if exchange.action.startswith("List"):
            return [Needed(action)]
        kind = "role" if "Role" in exchange.action and "Profile" not in exchange.action else "instance-profile"
        name = form["RoleName" if kind == "role" else "InstanceProfileName"]
        keys = {"iam:PermissionsBoundary": form["PermissionsBoundary"]} if "PermissionsBoundary" in form else {}
        if "Path" in form:
            arn = f"arn:aws:iam::123456789012:{kind}{form['Path']}{name}"
        else:
            try:
                there = iam.get_role(RoleName=name)["Role"] if kind == "role" else iam.get_instance_profile(
                    InstanceProfileName=name)["InstanceProfile"]
            except iam.exceptions.NoSuchEntityException:
                return []
            arn = there["Arn"]
            if "PermissionsBoundary" in there:
                keys = {"iam:PermissionsBoundary": there["PermissionsBoundary"]["PermissionsBoundaryArn"]}
        rights = [Needed(action, arn, **keys)]
        if any(field.startswith("Tags.") for field in form):
            rights.append(Needed("iam:TagRole" if kind == "role" else "iam:TagInstanceProfile", arn))
        if exchange.action == "AddRoleToInstanceProfile":
            role = iam.get_role(RoleName=form["RoleName"])["Role"]["Arn"]
            rights.append(Needed("iam:PassRole", role, **{"iam:PassedToService": "ec2.amazonaws.com"}))
        return rights

    def of_efs(self, exchange):
        parts = exchange.path.split("/")[2:]
        thing = {"file-systems": "FileSystem", "mount-targets": "MountTarget"}[parts[0]]
        if parts[2:] == ["security-groups"]:
            verb = {"GET": "Describe", "PUT": "Modify"}[exchange.method]
            return [Needed(f"elasticfilesystem:{verb}MountTargetSecurityGroups"), Needed(f"ec2:{verb}NetworkInterfaceAttribute")]
        verb = {"GET": "Describe", "POST": "Create", "DELETE": "Delete"}[exchange.method]
        if verb == "Describe":
            return [Needed(f"elasticfilesystem:Describe{thing}s")]
        action, keys = f"elasticfilesystem:{verb}{thing}", {}
        if action.endswith("CreateFileSystem"):
            order = exchange.json()
            tags = {tag["Key"]: tag["Value"] for tag in order["Tags"]}
            keys = use_of_key(order["KmsKeyId"], "elasticfilesystem", exchange.region) if "KmsKeyId" in order else []
            return keys + [Needed(action, **tags_as_keys("Request", tags)),
                    Needed("elasticfilesystem:TagResource", **{"elasticfilesystem:CreateAction": "CreateFileSystem"})]
        if action.endswith("DeleteFileSystem"):
            efs = self.client("efs", exchange.region)
            there = [one for one in efs.describe_file_systems()["FileSystems"] if one["FileSystemId"] == parts[1]]
            if not there:
                return []
            keys = tags_as_keys("Resource", {tag["Key"]: tag["Value"] for tag in there[0]["Tags"]})
        beside = {"elasticfilesystem:CreateMountTarget": ["DescribeSubnets", "DescribeNetworkInterfaces", "CreateNetworkInterface"],
                  "elasticfilesystem:DeleteMountTarget": ["DeleteNetworkInterface"]}
        return [Needed(action, **keys)] + [Needed(f"ec2:{one}") for one in beside.get(action, [])]

    def of_emr(self, exchange):
        action, document = f"elasticmapreduce:{exchange.action}", exchange.json()
        if exchange.action == "RunJobFlow":
            tags = tags_as_keys("Request", {tag["Key"]: tag["Value"] for tag in document["Tags"]})
            roles = [("ServiceRole", "elasticmapreduce.amazonaws.com"), ("JobFlowRole", "ec2.amazonaws.com")]
            return [Needed(action, **tags), Needed("elasticmapreduce:AddTags", **tags)] + [
                Needed("iam:PassRole", f"arn:aws:iam::123456789012:role/{document[field]}", **{"iam:PassedToService": service})
                for field, service in roles]
        if exchange.action in ("ModifyInstanceGroups", "TerminateJobFlows"):
            emr = self.client("emr", exchange.region)
            identity = document.get("ClusterId") or document["JobFlowIds"][0]
            tags = emr.describe_cluster(ClusterId=identity)["Cluster"]["Tags"]
            return [Needed(action, **tags_as_keys("Resource", {tag["Key"]: tag["Value"] for tag in tags}))]
        return [Needed(action)]

    def of_fsx(self, exchange):
        action, order = f"fsx:{exchange.action}", exchange.json()
        if exchange.action == "CreateFileSystem":
            tags = tags_as_keys("Request", {tag["Key"]: tag["Value"] for tag in order["Tags"]})
            keys = use_of_key(order["KmsKeyId"], "fsx", exchange.region) if "KmsKeyId" in order else []
            return keys + [Needed(action, **tags), Needed("fsx:TagResource", **tags)]
        if exchange.action == "DeleteFileSystem":
            there = self.client("fsx", exchange.region).describe_file_systems(FileSystemIds=[order["FileSystemId"]])["FileSystems"]
            return [Needed(action, **tags_as_keys("Resource", {tag["Key"]: tag["Value"] for tag in there[0]["Tags"]}))] if there else []
        return [Needed(action)]

    def of_kms(self, exchange):
        kms = self.client("kms", exchange.region)
        try:
            arn = kms.describe_key(KeyId=exchange.json()["KeyId"])["KeyMetadata"]["Arn"]
        except kms.exceptions.NotFoundException:
            return []
        return [Needed(f"kms:{exchange.action}", arn)]

    def of_ssm(self, exchange):
        return [Needed(f"ssm:{exchange.action}", f"arn:aws:ssm:{exchange.region}::parameter{exchange.json()['Name']}")]


def use_of_key(arn, service, region):
    """What a service asks of its caller that encrypts with a key, by the documents of EBS and EFS."""
    via = {"kms:ViaService": f"{service}.{region}.amazonaws.com"}
    return [Needed(f"kms:{one}", arn, **via) for one in ("Decrypt", "GenerateDataKeyWithoutPlaintext")] + [
        Needed("kms:CreateGrant", arn, **{"kms:GrantIsForAWSResource": "true"})]


def listed(value):
    return value if isinstance(value, list) else [value]


def holds(comparison, there, values):
    if comparison == "ForAllValues:StringEquals":
        return all(one in values for one in there or [])
    if comparison == "ForAllValues:StringLike":
        return all(any(fnmatch.fnmatchcase(one, value) for value in values) for one in there or [])
    if comparison in ("StringEquals", "Bool"):
        return there in values
    if comparison in ("StringLike", "ArnLike"):
        return there is not None and any(fnmatch.fnmatchcase(there, one) for one in values)
    raise AssertionError(f"{comparison} is unknown here")


def requested_tags(form):
    """{kind of resource: {key: value}} of a call's TagSpecifications."""
    tags = {}
    for number in range(1, 10):
        lead = f"TagSpecification.{number}."
        if lead + "ResourceType" in form:
            keys = [field for field in form if re.fullmatch(re.escape(lead) + r"Tag\.\d+\.Key", field)]
            tags[form[lead + "ResourceType"]] = {form[key]: form.get(key[:-3] + "Value", "") for key in keys}
    return tags


def tagging(arn, tags, made_by):
    return [Needed("ec2:CreateTags", arn, **tags_as_keys("Request", tags), **{"ec2:CreateAction": made_by})] if tags else []


def policy_of(text, account):
    return Policy(json.loads(text), account)
