#include <dtrain/cluster/compat_files.hpp>

namespace dtrain::cluster {

Json to_json(const ClusterFacts& facts) {
  Json workers = Json::array();
  for (const std::string& address : facts.workers) workers.push_back(address);
  return Json::object({{"cluster", facts.cluster},
                       {"region", facts.region},
                       {"head", facts.head},
                       {"workers", std::move(workers)},
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
  return facts;
}

}  // namespace dtrain::cluster
