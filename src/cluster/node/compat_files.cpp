#include <dtrain/cluster/compat_files.hpp>

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/admission.hpp>
#include <dtrain/net/ssh.hpp>

namespace dtrain::cluster {
namespace {

constexpr std::string_view kBegin = "# begin of the cluster's names, written by dtrain";
constexpr std::string_view kEnd = "# end of the cluster's names";

}  // namespace

std::string worker_alias(std::size_t number) { return fmt::format("deeplearning-worker{}", number); }

std::vector<std::string> cluster_variables(const ClusterFacts& facts) {
  std::vector<std::string> variables = {
      fmt::format("DEEPLEARNING_WORKERS_COUNT={}", facts.workers.size()),
      fmt::format("DEEPLEARNING_WORKERS_PATH={}", net::shell_quoted(facts.workers_path)),
      fmt::format("DEEPLEARNING_WORKER_GPU_COUNT={}", facts.gpus)};
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) variables.push_back(fmt::format("{}={}", name, net::shell_quoted(value)));
  };
  add("EFS_MOUNT", facts.shared_folder);
  add("AWS_REGION", facts.region);
  add("WORKER_LAUNCH_TEMPLATE_ID", facts.launch_template);
  add("ELASTIC_WORKER_TAG", facts.elastic_tag);
  return variables;
}

CompatFiles compat_files(const ClusterFacts& facts) {
  CompatFiles files;
  if (!facts.head.empty()) files.names = fmt::format("{} deeplearning-master\n", facts.head);
  for (std::size_t i = 0; i < facts.workers.size(); ++i) {
    files.names += fmt::format("{} {}\n", facts.workers[i], worker_alias(i + 1));
    files.workers += fmt::format("{}\n", worker_alias(i + 1));
  }
  for (const std::string& variable : cluster_variables(facts)) files.profile += fmt::format("export {}\n", variable);
  return files;
}

std::string with_cluster_names(std::string_view hosts_file, std::string_view names) {
  std::string kept;
  bool ours = false;
  for (const std::string& line : split(hosts_file, '\n')) {
    if (line == kBegin) ours = true;
    if (!ours && !(line.empty() && kept.empty())) kept += line + "\n";
    if (line == kEnd) ours = false;
  }
  while (kept.ends_with("\n\n")) kept.pop_back();
  return fmt::format("{}{}\n{}{}\n", kept, kBegin, names, kEnd);
}

Json to_json(const ClusterFacts& facts) {
  return Json::object({{"cluster", facts.cluster},
                       {"region", facts.region},
                       {"head", facts.head},
                       {"workers", json_texts(facts.workers)},
                       {"shared_folder", facts.shared_folder},
                       {"launch_template", facts.launch_template},
                       {"elastic_tag", facts.elastic_tag}});
}

ClusterFacts cluster_facts_from_json(const Json& json) {
  ClusterFacts facts{.cluster = json.at("cluster").as_string(),
                     .region = json.at("region").as_string(),
                     .head = json.at("head").as_string(),
                     .shared_folder = json.at("shared_folder").as_string(),
                     .launch_template = json.at("launch_template").as_string(),
                     .elastic_tag = json.at("elastic_tag").as_string()};
  for (const Json& address : json.at("workers").as_array()) facts.workers.push_back(address.as_string());
  // They become lines of /etc/hosts.
  const auto is_address = [](const std::string& text) { return is_ipv4(text); };
  if (!is_ipv4(facts.head) || !std::ranges::all_of(facts.workers, is_address)) {
    throw DataError("the facts of a cluster name an address that is none");
  }
  return facts;
}

}  // namespace dtrain::cluster
