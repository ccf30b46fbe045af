// What the tags of an adopted cluster remember of its Auto Scaling groups.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <dtrain/cluster/stack.hpp>

namespace dtrain::cluster {

// The processes that dtrain suspended, by the name of the group, apart by commas.
std::map<std::string, std::string> suspended_by_us(const Fleet& fleet);
std::string suspended_before(const Fleet& fleet, const std::string& group);  // of one group; empty: none
Tags scaling_tags(const std::map<std::string, std::string>& suspended);

std::vector<std::string> split_list(const std::string& text);  // an empty text is no element

}  // namespace dtrain::cluster
