#include <dtrain/cluster/tag_sync.hpp>

#include <algorithm>

#include <dtrain/base/text.hpp>

namespace dtrain::cluster {
namespace {

constexpr const char* kAddQueued = "ADD_QUEUED";
constexpr const char* kAdded = "ADDED";
constexpr const char* kRemovalQueued = "REMOVAL_QUEUED";
constexpr const char* kRemoved = "REMOVED";
constexpr std::chrono::minutes kLongestPause{5};

class Decision {
 public:
  explicit Decision(const TagSyncView& view) : view_(view) {}

  // A worker that `up` started belongs to the cluster, whatever its tags say.
  void consider(const Node& node) {
    if (node.role != Role::worker || node.base || !node.alive()) return;
    if (node.elastic_status == kRemoved) {
      // A machine of a stack leaves the job alone: what dtrain did not start, only its owner ends.
      if (!is_adopted(node)) step(TagSyncStep::Kind::end_instance, node);
      return;
    }
    if (node.elastic_status == kRemovalQueued) return go_on_removing(node);
    if (!node.elastic) return remove(node);
    add(node);
  }

  // The instance ended: the job must not wait for it.
  void consider_ended(const Node& node) {
    if (view_.job_runs && view_.listed.contains(node.private_ip)) step(TagSyncStep::Kind::remove_host, node);
  }

  std::vector<TagSyncStep> steps;

 private:
  void step(TagSyncStep::Kind kind, const Node& node, const char* status = "") {
    steps.push_back({kind, node.instance_id, node.private_ip, status});
  }

  void add(const Node& node) {
    if (!view_.job_runs || !view_.ready.contains(node.private_ip)) return;
    if (!view_.listed.contains(node.private_ip)) {
      // A host that was added before and is no longer listed was removed by the user or by the job.
      if (node.elastic_status == kAdded) return step(TagSyncStep::Kind::set_status, node, kRemovalQueued);
      step(TagSyncStep::Kind::add_host, node);
    }
    const auto word = view_.log.find(node.private_ip);
    const bool is_member = view_.listed.contains(node.private_ip) && word != view_.log.end() && word->second == kAdded;
    const char* status = is_member ? kAdded : kAddQueued;
    if (node.elastic_status != status && node.elastic_status != kAdded)
      step(TagSyncStep::Kind::set_status, node, status);
  }

  // The tag was removed. A node that was never in a job and has no status is ignored.
  void remove(const Node& node) {
    if (node.elastic_status.empty()) return;
    if (view_.job_runs && view_.listed.contains(node.private_ip)) step(TagSyncStep::Kind::remove_host, node);
    step(TagSyncStep::Kind::set_status, node, kRemovalQueued);
  }

  void go_on_removing(const Node& node) {
    if (view_.job_runs && view_.listed.contains(node.private_ip)) return step(TagSyncStep::Kind::remove_host, node);
    const auto word = view_.log.find(node.private_ip);
    const bool still_member = view_.job_runs && word != view_.log.end() && word->second == kAdded;
    if (!still_member) step(TagSyncStep::Kind::set_status, node, kRemoved);
  }

  const TagSyncView& view_;
};

}  // namespace

std::vector<TagSyncStep> decide_tag_sync(const Fleet& fleet, const TagSyncView& view) {
  Decision decision(view);
  for (const Node& node : fleet.nodes) decision.consider(node);
  for (const Node& node : fleet.ending) decision.consider_ended(node);
  return std::move(decision.steps);
}

std::chrono::seconds pause_between_looks(std::chrono::seconds every, int failures) {
  const std::chrono::seconds longest = std::max<std::chrono::seconds>(every, kLongestPause);
  for (; failures > 0 && every < longest; --failures) every *= 2;
  return std::min(every, longest);
}

std::map<std::string, std::string> last_words(std::string_view member_log) {
  std::map<std::string, std::string> words;
  for (const std::string& line : split(member_log, '\n')) {
    const std::vector<std::string> parts = split(trim(line), ' ');
    if (parts.size() == 4 && (parts[1] == kAdded || parts[1] == kRemoved)) words[parts[2]] = parts[1];
  }
  return words;
}

}  // namespace dtrain::cluster
