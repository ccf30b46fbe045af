// Starting instances: one pool after the other, each asked once, and never twice for the same machines.
#pragma once

#include <string>
#include <vector>

#include <dtrain/cluster/change.hpp>

namespace dtrain::cluster {

// What all launches of one change have in common.
struct LaunchOrder {
  std::string group_id{};            // of the cluster as it is now: a later one of the same name has another
  int number = 0;                    // launch_number()
  std::vector<std::string> names{};  // of the machines that are wanted
  std::string client_token(const Pool& pool, const std::string& address = {}) const;
  std::string launch_tag() const;
};

struct HeadOrder {
  const Wish& wish;
  const Account& account;
  const SecurityGroup& group;
  const std::string& user_data;
  std::string address;  // of the head before it, which nodes that are there know; empty: there was none
};
// The head's node as RunInstances answered: it has its private address, the one before it where that can be had. Throws
// NoCapacity.
Node launch_head(const Work& work, const LaunchOrder& order, const HeadOrder& head, Launched& launched);

// Ids of what was started: `least` or more, or none, which is no error. Throws AwsError where no pool can help.
std::vector<std::string> launch_workers(const Work& work, const LaunchOrder& order, const LaunchTemplate& from,
                                        const std::vector<Pool>& pools, const Tags& tags, int least,
                                        Launched& launched);

}  // namespace dtrain::cluster
