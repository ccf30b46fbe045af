// What Kubernetes says about the Job and the pods of a training. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <dtrain/base/json.hpp>

namespace dtrain::job {

struct PodView {
  std::string name, created, owner{};  // owner: uid
  bool coordinates = false;
  bool runs = false;               // its container runs
  std::optional<int> exit_code{};  // of the container that ended; a pod that was evicted may have none
  bool is_over = false;            // it succeeded or failed, or is a coordinator that ended
  std::string trouble;             // why it does not run; empty: nothing unusual
};

enum class JobPhase { missing, active, complete, failed };

struct ClusterView {
  JobPhase job = JobPhase::missing;
  std::string uid;            // of the Job
  std::string why;            // of a Job that failed
  std::vector<PodView> pods;  // coordinators first, then by time
  // The newest pod of the Job; nullptr: none.
  const PodView* coordinator() const;
  const PodView* find(const std::string& name) const;  // nullptr: no such pod
};

// The answer to `kubectl get job,pod -o json`. Throws DataError.
ClusterView cluster_view(const Json& list);

}  // namespace dtrain::job
