// TerminateInstances, StopInstances and StartInstances take all of their instances or, for one that is unknown or
// protected, none of them. Here every instance is taken for itself.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <dtrain/cluster/change.hpp>

namespace dtrain::cluster {

// An instance that stays, and why.
struct Refused {
  std::string instance_id{};
  net::AwsError why;
};
// Makes the call for each instance. An instance that EC2 does not know is skipped. Returns the instances that are
// refused: by their protection, their state or kind, or for want of capacity. Throws AwsError for an error of another
// kind.
std::vector<Refused> request_each(net::AwsCalls& aws, const char* action, const std::vector<std::string>& ids);
// Requests the termination of each instance.
std::vector<Refused> terminate(net::AwsCalls& aws, const std::vector<std::string>& ids);
// The same. Where these keys may not terminate them, all of `ids` are refused.
std::vector<Refused> terminate_allowed(net::AwsCalls& aws, const std::vector<std::string>& ids);

// Two `up`s that run at once with other options may have started a worker of one name each. After each has written its
// `names`, by instance id, the later worker of two ends. Returns the ids of `ours` that this call has ended. `known`:
// the fleet with them.
std::vector<std::string> end_doubles(const AwsContext& context, const Fleet& known,
                                     const std::map<std::string, std::string>& names, std::set<std::string> ours);

// Pure but for `call`: does it for all ids, and where it throws because of single ids, for the others.
std::vector<Refused> each_for_itself(const std::vector<std::string>& ids,
                                     const std::function<void(const std::vector<std::string>&)>& call);

}  // namespace dtrain::cluster
