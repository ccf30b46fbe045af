#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include <dtrain/base/gpu_models.hpp>
#include <dtrain/cluster/types.hpp>

namespace dtrain::cluster {

std::optional<double> TypeOffer::cheapest() const {
  if (on_demand && spot) return std::min(*on_demand, *spot);
  return on_demand ? on_demand : spot;
}

std::optional<int> TypeOffer::machines_left() const {
  if (!vcpus_left || type.vcpus == 0) return std::nullopt;
  return static_cast<int>(std::max(*vcpus_left, 0.0)) / type.vcpus;
}

std::string why_not_trained_on(const MachineType& type) {
  if (type.architecture != "x86_64")
    return fmt::format("its processor is {}, and dtrain runs on x86_64", type.architecture);
  if (type.gpus == 0) return {};
  const GpuModel* const gpu = gpu_model(type.gpu_name);
  if (!gpu) return fmt::format("dtrain does not know its GPU, a {}", type.gpu_name);
  if (gpu->trains()) return {};
  if (gpu->capability == Capability{}) return fmt::format("its GPU, a {}, is not NVIDIA's", gpu->name);
  return fmt::format("its GPU, a {}, has compute capability {}, and dtrain needs {} or newer", gpu->name,
                     text_of(gpu->capability), text_of(kLeastCapability));
}

std::vector<TypeOffer> fitting_offers(std::vector<TypeOffer> offers, const TypeWish& wish) {
  std::erase_if(offers, [&](const TypeOffer& one) {
    const auto price = one.cheapest();
    const bool is_too_dear = wish.max_price && (!price || *price > *wish.max_price);
    return one.type.gpus < wish.gpus || one.type.gpu_memory_gib < wish.gpu_memory_gib || is_too_dear;
  });
  std::ranges::sort(offers, {}, [](const TypeOffer& one) {
    return std::tuple(!one.why_not.empty(), one.on_demand.value_or(std::numeric_limits<double>::max()), one.type.name);
  });
  return offers;
}

}  // namespace dtrain::cluster
