#include <dtrain/base/gpu_models.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include <dtrain/base/text.hpp>

namespace dtrain {
namespace {

template <typename Is>
const GpuModel* find_model(Is is) {
  const auto* const found = std::ranges::find_if(kGpuModels, is);
  return found == std::end(kGpuModels) ? nullptr : found;
}

}  // namespace

std::string text_of(Capability capability) { return fmt::format("{}.{}", capability.major, capability.minor); }

Capability capability_from(std::string_view text) {
  const std::vector<std::string> parts = split(text, '.');
  if (parts.size() != 2) return {};
  const auto major = parse_integer(parts[0]), minor = parse_integer(parts[1]);
  if (!major || !minor) return {};
  return {static_cast<int>(*major), static_cast<int>(*minor)};
}

const GpuModel* gpu_model(std::string_view name) {
  return find_model([&](const GpuModel& model) { return model.name == name; });
}

const GpuModel* gpu_model_of_instance(std::string_view type) {
  const std::string family(type.substr(0, type.find('.')));
  if (family.empty()) return nullptr;
  return find_model([&](const GpuModel& model) { return std::ranges::count(split(model.instances, ' '), family) > 0; });
}

std::string models_that_train() {
  std::vector<std::string> names;
  for (const GpuModel& model : kGpuModels) {
    if (model.trains()) names.emplace_back(model.name);
  }
  const std::string last = names.back();
  names.pop_back();
  return fmt::format("{} and {}", join(names, ", "), last);
}

}  // namespace dtrain
