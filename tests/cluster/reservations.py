"""Capacity reservations of EC2, which moto lacks."""

import re

from faults import Answer, refusal

NAMESPACE = "http://ec2.amazonaws.com/doc/2016-11-15/"
RESERVATION = "CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId"


class Reservations:
    """`reservations`: {id: {"type", "zone", "state", "total", "available", "platform", "tenancy"}}. `versions`: {(launch
    template, version): (the version that it is made of, its reservation)}."""

    def CreateLaunchTemplateVersion(self, exchange):
        """A version that is made of another one has all that the other one has."""
        answer, form = exchange.forward(), exchange.form
        if answer.status == 200 and "SourceVersion" in form:
            number = re.search(rb"<versionNumber>(\d+)<", answer.body)[1].decode()
            source = self.number_of(exchange, form["SourceVersion"])
            self.versions[form["LaunchTemplateId"], number] = source, form["LaunchTemplateData." + RESERVATION]
        return answer

    def number_of(self, exchange, version):
        """A version is made of what another one is now."""
        if version != "$Default":
            return version
        there = self.ec2(exchange).describe_launch_templates(LaunchTemplateIds=[exchange.form["LaunchTemplateId"]])
        return str(there["LaunchTemplates"][0]["DefaultVersionNumber"])

    # An instance that names one runs there or not at all.

    def DescribeCapacityReservations(self, exchange):
        identity = exchange.form["CapacityReservationId.1"]
        if identity not in self.reservations:
            return refusal(exchange, "InvalidCapacityReservationId.NotFound", f"The capacity reservation ID '{identity}' does not exist")
        one = self.reservations[identity]
        words = {"capacityReservationId": identity, "instanceType": one["type"], "availabilityZone": one["zone"],
                 "state": one.get("state", "active"), "instancePlatform": one.get("platform", "Linux/UNIX"),
                 "tenancy": one.get("tenancy", "default"), "totalInstanceCount": one["total"],
                 "availableInstanceCount": one["available"]}
        item = "".join(f"<{name}>{value}</{name}>" for name, value in words.items())
        return Answer(200, f'<DescribeCapacityReservationsResponse xmlns="{NAMESPACE}"><capacityReservationSet><item>{item}</item>'
                           "</capacityReservationSet></DescribeCapacityReservationsResponse>")

    def reserve(self, identity, kind, zone, count):
        """Why the reservation does not take them; None: it does."""
        one = self.reservations.get(identity, {})
        if one.get("type") != kind or one.get("zone") not in (zone, "*"):
            return "InvalidCapacityReservationState"
        if one["available"] < count:
            return "ReservationCapacityExceeded"
        one["available"] -= count
        return None

    def source_of(self, form):
        """(version with the content, reservation of the version that is named)"""
        lead = "LaunchTemplateConfigs.1.LaunchTemplateSpecification."
        version = form.get(lead + "Version", "$Default")
        return self.versions.get((form.get(lead + "LaunchTemplateId"), version), (version, None))

    def reservation_of(self, exchange):
        specification = self.template(exchange).get("CapacityReservationSpecification", {})
        return self.source_of(exchange.form)[1] or specification.get("CapacityReservationTarget", {}).get("CapacityReservationId")
