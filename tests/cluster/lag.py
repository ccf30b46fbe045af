"""The eventual consistency of AWS: a fresh resource is invisible to the first calls of each action that name or list it.
`looks` is {action: number of those calls}; "*" stands for every action without an entry."""

import re
import threading
import xml.etree.ElementTree as ET

from faults import refusal

SPACE = "http://ec2.amazonaws.com/doc/2016-11-15/"


class Kind:
    """`made`: a resource in the answer of the action that creates it; `field`: the fields of a call that name one; `tag`:
    the element that names one in a list."""

    def __init__(self, made, code, field, tag, status=400):
        self.made, self.code, self.field, self.tag, self.status = made, code, re.compile(field), tag, status


INSTANCE = (rb">(i-\w+)<", "InvalidInstanceID.NotFound", r"(InstanceId|ResourceId)(\.\d+)?$", "instanceId")
KINDS = {
    "CreateSecurityGroup": Kind(rb"<groupId>(sg-\w+)<", "InvalidGroup.NotFound",
                                r"(GroupId|SecurityGroupId|ResourceId)(\.\d+)?$", "groupId"),
    "CreateLaunchTemplate": Kind(rb"<launchTemplateId>(lt-\w+)<", "InvalidLaunchTemplateId.NotFound",
                                 r"(LaunchTemplateId|ResourceId)(\.\d+)?$", "launchTemplateId"),
    "ImportKeyPair": Kind(rb"<keyName>([\w-]+)<", "InvalidKeyPair.NotFound", r"KeyName(\.\d+)?$", "keyName"),
    "CreatePlacementGroup": Kind(rb"<groupName>([\w-]+)<", "InvalidPlacementGroup.Unknown", r"Placement\.GroupName$", "groupName"),
    "RunInstances": Kind(*INSTANCE), "CreateFleet": Kind(*INSTANCE),
    "CreateRole": Kind(rb"<RoleName>([\w-]+)<", "NoSuchEntity", r"RoleName$", "", 404),
    "CreateInstanceProfile": Kind(rb"<InstanceProfileName>([\w-]+)<", "NoSuchEntity", r"InstanceProfileName$", "", 404),
    "CreateFileSystem": Kind(rb'"FileSystemId": ?"(fs-\w+)"', "FileSystemNotFound", r"(?!)", "", 404)}


class Lag:
    def __init__(self):
        self.looks, self.lock = {}, threading.Lock()
        self.fresh = {}    # resource -> the action that created it
        self.counted = {}  # (action, kind, resource) -> calls so far

    def is_hidden(self, action, resource):
        """Counts one more call that names or lists the resource."""
        key = action, *resource
        self.counted[key] = self.counted.get(key, 0) + 1
        return self.counted[key] <= self.looks.get(action, self.looks.get("*", 0))

    def see(self, exchange):
        """The error for a call that names resources which it does not see yet; None: it sees all of them."""
        if not self.looks or exchange.action in ("ImportKeyPair", "CreateRole", "CreateInstanceProfile"):
            return None
        text = exchange.target + ("" if exchange.form else exchange.body.decode(errors="replace"))
        with self.lock:
            named = [(made, name) for made, name in self.fresh if made == "CreateFileSystem" and name in text or any(
                value == name and KINDS[made].field.search(field) for field, value in exchange.form.items())]
            hidden = [one for one in named if self.is_hidden(exchange.action, one)]
        if not hidden:
            return None
        kind = KINDS[hidden[0][0]]
        return refusal(exchange, kind.code, f"'{', '.join(name for _, name in hidden)}' does not exist", kind.status)

    def seen(self, exchange, answer):
        """Notes what the call created, and removes what it does not see yet from a list."""
        if not self.looks or answer.status not in (200, 201):
            return answer
        with self.lock:
            if exchange.action in KINDS:
                self.fresh |= {(exchange.action, name.decode()): True
                               for name in re.findall(KINDS[exchange.action].made, answer.body)}
            if exchange.service == "ec2" and exchange.action.startswith("Describe"):
                answer.body = self.without_hidden(exchange.action, answer.body)
        return answer

    def without_hidden(self, action, body):
        ET.register_namespace("", SPACE)
        tree = ET.fromstring(body.replace(b'2016-11-15"', b'2016-11-15/"'))
        tags = {made: {kind.tag, "resourceId"} for made, kind in KINDS.items()}
        judged = {}
        for holder in list(tree.iter()):
            for item in [child for child in holder if child.tag.endswith("}item")]:
                named = {(child.tag.rpartition("}")[2], child.text) for child in item}
                for resource in [one for one in self.fresh if any((tag, one[1]) in named for tag in tags[one[0]])]:
                    if resource not in judged:
                        judged[resource] = self.is_hidden(action, resource)
                    if judged[resource] and item in list(holder) and not holder.tag.endswith("}groupSet"):
                        holder.remove(item)
        for holder in tree.iter(f"{{{SPACE}}}reservationSet"):
            for reservation in [item for item in holder if not len(item.find(f"{{{SPACE}}}instancesSet"))]:
                holder.remove(reservation)
        return ET.tostring(tree, xml_declaration=True, encoding="UTF-8")
