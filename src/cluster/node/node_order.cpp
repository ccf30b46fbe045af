#include <dtrain/cluster/node_order.hpp>

#include <dtrain/base/json.hpp>

namespace dtrain::cluster {

NodeOrder read_node_order(const Path& file) {
  const Json json = Json::parse(read_file(file), file.string());
  const Json* adopted = json.find("adopted");
  const Json* patience = json.find("replace_head_after");  // of a cluster that an earlier version made: none
  return {.cluster = json.at("cluster").as_string(),
          .head = json.at("head").as_string(),
          .port = static_cast<std::uint16_t>(json.at("port").as_integer()),
          .admission = json.at("admission").as_string(),
          .bundle = json.at("bundle").as_string(),
          .login = json.at("login").as_string(),
          .region = json.at("region").as_string(),
          .shared_folder = json.at("folder").as_string(),
          .replace_head_after = std::chrono::seconds(patience ? patience->as_integer() : 0),
          .adopted = adopted && adopted->as_bool()};
}

}  // namespace dtrain::cluster
