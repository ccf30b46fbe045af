#include "job_answers.hpp"

#include <dtrain/elastic/host_file.hpp>

namespace dtrain::job {

Json list_question() { return Json::object({{"ask", "list"}}); }

std::set<std::string> connected_nodes(const Json& list) {
  std::set<std::string> found;
  for (const Json& node : list.at("nodes").as_array()) {
    if (node.at("connected").as_bool()) found.insert(node.at("address").as_string());
  }
  return found;
}

std::set<std::string> names_in_host_file(const std::string& text) {
  std::set<std::string> found;
  for (const elastic::HostLine& line : elastic::parse_host_file(text).hosts) found.insert(line.name);
  return found;
}

void add_host_states(const Json& job, cluster::TagSyncView& view) {
  view.job_runs = true;
  view.elastic = job.at("elastic").as_bool();
  for (const Json& host : job.at("hosts").as_array()) {
    view.states[host.at("name").as_string()] = host.at("state").as_string();
  }
}

}  // namespace dtrain::job
