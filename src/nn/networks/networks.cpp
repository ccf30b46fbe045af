#include <dtrain/nn/networks.hpp>

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

#include "families.hpp"

namespace dtrain::nn {
namespace {

struct Family {
  const char* name;
  Graph (*build)(const NetworkOptions&);
  bool has_depths;
  bool has_width;
  bool has_batch_norm_option;
};

constexpr Family kFamilies[] = {
    {"resnet", build_resnet, true, true, false},
    {"resnet-v1", build_resnet_v1, true, true, false},
    {"resnet-v1.5", build_torch_resnet, true, true, false},
    {"lenet", build_lenet, false, false, false},
    {"mlp", build_mlp, false, false, false},
    {"vgg", build_vgg, true, false, true},
    {"mobilenet", build_mobilenet, false, false, false},
    {"speednet", build_speednet, false, true, false},
};

const Family& find_family(const std::string& name) {
  const auto found = std::ranges::find_if(kFamilies, [&](const Family& family) { return name == family.name; });
  if (found != std::end(kFamilies)) return *found;
  const std::vector<std::string> names = network_names();
  const auto nearest = nearest_name(name, names);
  throw UsageError(
      fmt::format("there is no network \"{}\": there are {}", name, join(names, ", ")),
      nearest ? fmt::format("did you mean {}?", *nearest) : "give one of them, or a FILE.json, to setting 'network'");
}

void refuse(bool given, bool known, const Family& family, const char* option) {
  if (given && !known) {
    throw UsageError(fmt::format("{} has no choice of {}", family.name, option), fmt::format("leave {} out", option));
  }
}

}  // namespace

Graph build_network(const NetworkOptions& options) {
  const Family& family = find_family(options.name);
  refuse(options.num_layers != 0, family.has_depths, family, "setting 'num-layers'");
  refuse(options.width != 0, family.has_width, family, "setting 'width'");
  refuse(options.batch_norm, family.has_batch_norm_option, family, "setting 'batch-norm'");
  return family.build(options);
}

std::vector<std::string> network_names() {
  std::vector<std::string> names;
  for (const Family& family : kFamilies) names.emplace_back(family.name);
  return names;
}

}  // namespace dtrain::nn
