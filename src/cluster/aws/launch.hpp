// Starts instances: one pool after the other, each asked once, and never twice for the same machines. A call whose
// reply is lost has perhaps started machines: it is repeated with its client token, and only after a look for them by
// tag.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <dtrain/cluster/change.hpp>

namespace dtrain::cluster {

// The common part of all launches of one change.
struct LaunchOrder {
  std::string group_id{};            // of the present cluster: a later cluster of the same name has another
  int number = 0;                    // launch_number()
  std::vector<std::string> names{};  // of the wanted workers; of a pool whose machines count as several, not all
  // Empty: the same order of another process is this one, and gets the same machines. Else it is an order of its own.
  std::string nonce{};
  // For a reconciler: a pool whose quota is used up is one without machines, and a refusal is an attempt of its pool.
  bool heals = false;
  std::function<void()> between_pools{};  // called before each is asked; may be empty
  // `variant` distinguishes orders to the same pool.
  std::string client_token(const Pool& pool, const std::string& variant = {}) const;
  std::string launch_tag() const;
};

struct HeadOrder {
  const ClusterRequest& request;
  const Account& account;
  const SecurityGroup& group;
  const std::string& user_data;
  std::string address;  // private address of the previous head, which existing nodes know; empty: there was none
};
// Starts the head and returns its node as RunInstances describes it, with its private address: that of the previous
// head, if possible. Throws NoCapacity.
Node launch_head(const AwsContext& context, const LaunchOrder& order, const HeadOrder& head, Launched& launched);

// Starts machines that count as all workers of the order, and returns their ids: those of `least` workers or more, or
// none, which is no error. Throws AwsError for errors that no
// pool can avoid, and where it stays unknown whether a pool has started any.
std::vector<std::string> launch_workers(const AwsContext& context, const LaunchOrder& order, const LaunchTemplate& from,
                                        const std::vector<Pool>& pools, const Tags& tags, int least,
                                        Launched& launched);

}  // namespace dtrain::cluster
