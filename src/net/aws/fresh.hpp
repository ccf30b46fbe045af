// Resources that were created a moment ago. AWS is eventually consistent: for a while after a create, some calls answer
// that the new resource does not exist, and such an answer means "not yet".
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include <dtrain/base/mutex.hpp>
#include <dtrain/net/aws.hpp>

namespace dtrain::net {

// Safe for concurrent use.
class FreshResources {
 public:
  using Clock = std::chrono::steady_clock;
  // How long after its creation a resource may be unknown to AWS.
  static constexpr std::chrono::seconds kUntilSeen{60};

  void note(const std::string& resource, Clock::time_point now);
  // Whether the refusal says that a resource does not exist which is among `named`, the values of the request, and was
  // created less than kUntilSeen ago. Another unknown resource in the message makes it a real refusal.
  bool may_appear(const AwsError::Facts& facts, const std::vector<std::string>& named, Clock::time_point now) const;

 private:
  bool is_fresh(const std::string& resource, Clock::time_point now) const;

  mutable Mutex mutex_;
  std::map<std::string, Clock::time_point> made_ DTRAIN_GUARDED_BY(mutex_);
};

}  // namespace dtrain::net
