// The bridge between the tags of instances and the hosts of a running job: a machine that carries the elastic tag
// joins, and leaves when the tag is taken away. The tag elastic_worker_status tells how far it is:
//   (none) -> ADD_QUEUED -> ADDED -> REMOVAL_QUEUED -> REMOVED, then the instance is ended.
// Pure: whoever asks carries the steps out and asks again some seconds later; a step that was lost comes again.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <dtrain/cluster/fleet.hpp>

namespace dtrain::cluster {

// What is known of the job and of the head's registry. Hosts are private addresses.
struct BridgeView {
  bool job_runs = false;
  std::set<std::string> listed{};            // in the job's host file
  std::set<std::string> ready{};             // registered with the head, so that an agent can start there
  std::map<std::string, std::string> log{};  // the last word of host_worker_log on a host: ADDED or REMOVED
};

struct BridgeStep {
  enum class Kind { add_host, remove_host, set_status, end_instance };
  Kind kind = Kind::set_status;
  std::string instance_id{}, host{};
  std::string status{};  // of set_status
  friend bool operator==(const BridgeStep&, const BridgeStep&) = default;
};

// In the order in which they are to be done: an instance is ended only in a later round than its tag said REMOVED.
std::vector<BridgeStep> decide_bridge(const Fleet& fleet, const BridgeView& view);

// Until the next look: `every` while all is well, twice as long with each further failure in a row, up to 5 minutes
// or `every`, whichever is longer.
std::chrono::seconds pause_between_looks(std::chrono::seconds every, int failures);

// {host: its last word} of the lines `SEQ ADDED|REMOVED HOST NANOSECONDS`; others count for nothing.
std::map<std::string, std::string> last_words(std::string_view member_log);

}  // namespace dtrain::cluster
