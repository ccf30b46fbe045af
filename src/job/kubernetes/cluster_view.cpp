#include "cluster_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include <dtrain/launcher/kubernetes.hpp>

namespace dtrain::job {
namespace {

std::string text_at(const Json* json, std::string_view key) {
  const Json* value = json ? json->find(key) : nullptr;
  return value && value->is_string() ? value->as_string() : "";
}

const Json* member(const Json* json, std::string_view key) { return json ? json->find(key) : nullptr; }

std::vector<Json> items_at(const Json* json, std::string_view key) {
  const Json* value = member(json, key);
  return value && value->is_array() ? value->as_array() : std::vector<Json>();
}

std::string with_message(const std::string& reason, const std::string& message) {
  return message.empty() ? reason : fmt::format("{}: {}", reason, message);
}

// A container that is made, or that waits for its turn, is no trouble.
std::string trouble_of(const Json* status) {
  constexpr std::array<std::string_view, 3> kUsual = {"", "ContainerCreating", "PodInitializing"};
  for (const Json& container : items_at(status, "containerStatuses")) {
    const Json* waiting = member(member(&container, "state"), "waiting");
    const std::string reason = text_at(waiting, "reason");
    if (std::ranges::find(kUsual, reason) == kUsual.end()) return with_message(reason, text_at(waiting, "message"));
  }
  for (const Json& condition : items_at(status, "conditions")) {
    if (text_at(&condition, "type") == "PodScheduled" && text_at(&condition, "status") == "False")
      return with_message(text_at(&condition, "reason"), text_at(&condition, "message"));
  }
  if (text_at(status, "phase") != "Failed") return "";
  return with_message(text_at(status, "reason"), text_at(status, "message"));
}

PodView pod_view(const Json& item) {
  const Json* metadata = member(&item, "metadata");
  const Json* status = member(&item, "status");
  const std::string phase = text_at(status, "phase");
  PodView pod{.name = text_at(metadata, "name"),
              .created = text_at(metadata, "creationTimestamp"),
              .coordinates = text_at(member(metadata, "labels"), "app.kubernetes.io/component") == "coordinator",
              .is_over = phase == "Succeeded" || phase == "Failed",
              .trouble = trouble_of(status)};
  for (const Json& owner : items_at(metadata, "ownerReferences")) pod.owner = text_at(&owner, "uid");
  for (const Json& container : items_at(status, "containerStatuses")) {
    if (text_at(&container, "name") != launcher::kContainer) continue;
    const Json* state = member(&container, "state");
    pod.runs = member(state, "running") != nullptr;
    const Json* code = member(member(state, "terminated"), "exitCode");
    if (code && code->is_integer()) pod.exit_code = static_cast<int>(code->as_integer());
    if (pod.coordinates && pod.exit_code) pod.is_over = true;  // whatever runs beside it
  }
  return pod;
}

void look_at_job(const Json& item, ClusterView& view) {
  view.job = JobPhase::active;
  view.uid = text_at(member(&item, "metadata"), "uid");
  for (const Json& condition : items_at(member(&item, "status"), "conditions")) {
    if (text_at(&condition, "status") != "True") continue;
    const std::string type = text_at(&condition, "type");
    if (type == "Complete") view.job = JobPhase::complete;
    if (type != "Failed") continue;
    view.job = JobPhase::failed;
    view.why = with_message(text_at(&condition, "reason"), text_at(&condition, "message"));
  }
}

}  // namespace

const PodView* ClusterView::coordinator() const {
  const auto is_coordinator = [](const PodView& pod) { return pod.coordinates; };
  const auto last = std::find_if(pods.rbegin(), pods.rend(), is_coordinator);
  return last == pods.rend() ? nullptr : &*last;
}

const PodView* ClusterView::find(const std::string& name) const {
  const auto pod = std::ranges::find(pods, name, &PodView::name);
  return pod == pods.end() ? nullptr : &*pod;
}

ClusterView cluster_view(const Json& list) {
  ClusterView view;
  for (const Json& item : list.at("items").as_array()) {
    const std::string kind = text_at(&item, "kind");
    if (kind == "Job") look_at_job(item, view);
    if (kind == "Pod") view.pods.push_back(pod_view(item));
  }
  std::ranges::sort(view.pods, {},
                    [](const PodView& pod) { return std::tuple(!pod.coordinates, pod.created, pod.name); });
  return view;
}

}  // namespace dtrain::job
