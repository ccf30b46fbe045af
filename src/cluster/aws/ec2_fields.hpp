// Lists in the form of EC2's query parameters: "Filter.1.Name", "Filter.1.Value.1", "TagSpecification.1.Tag.2.Key".
#pragma once

#include <string>
#include <vector>

#include <dtrain/cluster/fleet.hpp>
#include <dtrain/net/aws.hpp>

namespace dtrain::cluster {

using Fields = std::vector<net::HttpField>;

// Appends Filter.N; N goes on from those that are there.
Fields filtered(std::vector<std::pair<std::string, std::string>> filters);
// Appends "InstanceId.1=...", "InstanceId.2=..." and so on.
void add_list(Fields& fields, const std::string& name, const std::vector<std::string>& values);
// Appends TagSpecification.N for resources of that kind; `prefix` is for instance "LaunchTemplateData.".
void add_tags(Fields& fields, const std::string& prefix, int number, const std::string& kind, const Tags& tags);

}  // namespace dtrain::cluster
