// Synchronises the tags of instances with the hosts of a running job: a machine that carries the elastic tag joins, and
// leaves when the tag is removed. The tag elastic_worker_status shows the progress:
//   (none) -> ADD_QUEUED -> ADDED -> REMOVAL_QUEUED -> REMOVED, then the instance is terminated.
// Pure: the caller carries the steps out and decides again some seconds later, so a step that was lost is decided
// again.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <dtrain/base/json.hpp>
#include <dtrain/cluster/fleet.hpp>

namespace dtrain::cluster {

// What is known of the job and of the head's registry. Hosts are private addresses.
struct TagSyncView {
  std::string unknown{};  // why nothing could be asked; empty: it could
  bool job_runs = false;
  bool elastic = false;                         // hosts may join and leave the job
  std::map<std::string, std::string> states{};  // of the job's hosts, as `dtrain hosts list` names them
  Json nodes{};                                 // the head's list of nodes; null: this machine cannot ask it
  std::set<std::string> listed{};               // in the job's host file
  std::set<std::string> ready{};                // registered with the head: an agent can be started there
  std::map<std::string, std::string> log{};     // latest entry of host_worker_log for a host: ADDED or REMOVED
};

struct TagSyncStep {
  enum class Kind { add_host, remove_host, set_status, end_instance };
  Kind kind = Kind::set_status;
  std::string instance_id{}, host{};
  std::string status{};  // for set_status
  friend bool operator==(const TagSyncStep&, const TagSyncStep&) = default;
};

// The steps in the order in which they are carried out. An instance is terminated only in a round after its tag said
// REMOVED.
std::vector<TagSyncStep> decide_tag_sync(const Fleet& fleet, const TagSyncView& view);

// Pause until the next round: `every` while all is well, doubled with each further failure in a row, up to 5 minutes or
// `every`, whichever is longer.
std::chrono::seconds pause_between_looks(std::chrono::seconds every, int failures);

// {host: latest entry} from the lines `SEQ ADDED|REMOVED HOST NANOSECONDS`; other lines are ignored.
std::map<std::string, std::string> last_words(std::string_view member_log);

}  // namespace dtrain::cluster
