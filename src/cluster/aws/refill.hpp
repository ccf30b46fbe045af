// Starts workers to replace lost ones.
#pragma once

#include <string>
#include <vector>

#include <dtrain/cluster/change.hpp>

namespace dtrain::cluster {

struct Refill {
  std::vector<Node> added{};
  std::vector<Node> ended{};  // started as well, and ended by EC2 at once
  Launched workers{};
};
// Starts at most as many workers as there are names, from the first of the pools that has any, and names them; none is
// no error. The workers carry tag::kHealed. Throws UsageError for an incomplete cluster and AwsError for errors that no
// pool can avoid; `result` then holds the attempts.
void refill_workers(const AwsContext& context, const Fleet& fleet, const std::vector<std::string>& names,
                    const std::vector<Pool>& pools, NodeLifecycle lifecycle, Refill& result);

}  // namespace dtrain::cluster
