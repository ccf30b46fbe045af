// TerminateInstances, StopInstances and StartInstances take all of their instances or, for one that is unknown or
// protected, none of them. Here every instance is taken for itself.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <dtrain/net/aws_calls.hpp>

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

// Pure but for `call`: does it for all ids, and where it throws because of single ids, for the others.
std::vector<Refused> each_for_itself(const std::vector<std::string>& ids,
                                     const std::function<void(const std::vector<std::string>&)>& call);

}  // namespace dtrain::cluster
