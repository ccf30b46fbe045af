// Options that the verbs of `cluster` share: which cluster, in whose account, and what it is to be.
#pragma once

#include <chrono>
#include <string>

#include <dtrain/cluster/spec.hpp>

#include "option_set.hpp"

namespace dtrain::config {

// Which cluster, in whose account.
struct ClusterPlace {
  std::string name;
  std::string region, profile;  // empty: of the environment and ~/.aws
  int timeout_seconds = 900;
  bool timing = false;
};
void bind_cluster(OptionSet& set, ClusterPlace& place);
void bind_account(OptionSet& set, ClusterPlace& place);  // all of it but the name
void bind_yes(OptionSet& set, bool& yes, const std::string& help);
void bind(OptionSet& set, cluster::Spec& spec);
std::string span_text(std::chrono::seconds span);  // "30m", as --autostop takes it, in the longest unit

}  // namespace dtrain::config
