"""FSx for Lustre, where moto lacks what its documents say: client tokens, sizes, the rules of the security group, states that take
time, and the name to mount by, which shows with the second look."""

import json

from faults import Answer, refusal

KIND = "application/x-amz-json-1.1"


class Lustre:
    """`lustre_looks`: how often a file system is seen being created, and being deleted. `lustre`: {id: {"group", "looks",
    "state"}}."""

    def answer_fsx(self, exchange):
        rules = {"CreateFileSystem": self.create_lustre, "DescribeFileSystems": self.describe_lustre,
                 "DeleteFileSystem": self.delete_lustre}
        with self.lock:
            return rules[exchange.action](exchange)

    def create_lustre(self, exchange):
        asked = exchange.json()
        key = (exchange.region, "fsx", asked["ClientRequestToken"])
        if key in self.answered:
            before, answer = self.answered[key]
            return answer if before == asked else refusal(exchange, "IncompatibleParameterError", "another request has this token")
        size = asked["StorageCapacity"]
        if asked["LustreConfiguration"]["DeploymentType"] != "PERSISTENT_2" or (size != 1200 and size % 2400):
            return refusal(exchange, "BadRequest", f"{size} is no capacity of this deployment type")
        group, = asked["SecurityGroupIds"]
        there = self.ec2(exchange).describe_security_groups(GroupIds=[group])["SecurityGroups"][0]
        if not any(pair["GroupId"] == group for rule in there["IpPermissions"] for pair in rule["UserIdGroupPairs"]):
            return refusal(exchange, "InvalidNetworkSettings", f"{group} does not permit Lustre LNET network traffic on port 988")
        answer = exchange.forward()
        if answer.status == 200:
            made = json.loads(answer.body)["FileSystem"]
            self.lustre[made["FileSystemId"]] = {"group": group, "looks": 0, "state": "AVAILABLE"}
            answer.body = json.dumps({"FileSystem": {**made, "Lifecycle": "CREATING"}}).encode()
            self.answered[key] = asked, answer
        return answer

    def describe_lustre(self, exchange):
        answer = exchange.forward()
        shown = []
        for one in json.loads(answer.body)["FileSystems"]:
            there = self.lustre.get(one["FileSystemId"], {"looks": 99, "state": "AVAILABLE"})
            there["looks"] += 1
            one["Lifecycle"] = there["state"] if there["looks"] > self.lustre_looks else "CREATING"
            one["LustreConfiguration"]["MountName"] = one["FileSystemId"][-8:]
            shown.append(one)
        for identity, there in list(self.lustre.items()):
            if there["state"] == "DELETING":
                there["looks"] += 1
                if there["looks"] > self.lustre_looks:
                    del self.lustre[identity]
                elif identity in exchange.json().get("FileSystemIds", [identity]):
                    shown.append({"FileSystemId": identity, "FileSystemType": "LUSTRE", "Lifecycle": "DELETING", "Tags": []})
        named = exchange.json().get("FileSystemIds", [])
        if named and not shown:
            return refusal(exchange, "FileSystemNotFound", f"{named[0]} does not exist")
        answer.body = json.dumps({"FileSystems": shown}).encode()
        return answer

    def delete_lustre(self, exchange):
        answer = exchange.forward()
        if answer.status == 200:
            self.lustre[exchange.json()["FileSystemId"]].update(state="DELETING", looks=0)
        return answer

    def groups_of_lustre(self):
        return [one["group"] for one in self.lustre.values()]
