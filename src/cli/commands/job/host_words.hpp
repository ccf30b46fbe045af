// The hosts that `dtrain hosts` commands name, and what they say of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <dtrain/base/json.hpp>

namespace dtrain::cli {

// Both without repetitions. A line is a host with its "slots=N", which is the word after it.
std::vector<std::string> host_names(const std::string& words);
std::vector<std::string> host_lines(const std::string& words);

// Throws UsageError for lines that the coordinator would refuse to add: those of no host, and those of a host that the
// job has. What it has is in `list`, the coordinator's answer to {"ask": "list"}, and in `file`, the text of
// host_worker; an empty one is not known. Drained hosts, and those that are leaving, are left to the coordinator. Pure.
void check_new_lines(const std::vector<std::string>& lines, const Json& list, std::string_view file);

// "93 %"; "-" for 0, which stands for a goodput that was not measured.
std::string goodput_text(double percent);

}  // namespace dtrain::cli
