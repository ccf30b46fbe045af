#include "cuda_backend.hpp"

#include <fmt/format.h>

#include <type_traits>
#include <utility>

#include <dtrain/backend/checks.hpp>
#include <dtrain/base/error.hpp>

#include "executable.hpp"

namespace dtrain::backend::cuda {
namespace {

// The device, opened when it is first needed. One thread at a time.
class Opening {
 public:
  explicit Opening(std::function<std::shared_ptr<Device>()> open) : open_(std::move(open)) {}
  const std::shared_ptr<Device>& device() {
    if (!device_) device_ = open_();
    return device_;
  }

 private:
  const std::function<std::shared_ptr<Device>()> open_;
  std::shared_ptr<Device> device_;
};

int levels_of(const nn::Node& node) {
  return std::visit(
      [&]<typename Layer>(const Layer& layer) {
        if constexpr (requires { layer.levels.count; }) return layer.levels.count;
        return std::is_same_v<Layer, nn::Pyramid> ? static_cast<int>(node.inputs.size()) : 0;
      },
      node.layer);
}

// Kernels have the places of levels by value.
void check_levels(const nn::Graph& graph) {
  for (const nn::Node& node : graph.nodes) {
    if (levels_of(node) <= kMostLevels) continue;
    throw UsageError(fmt::format("the cuda backend computes pyramids of at most {} levels, '{}' has {}", kMostLevels,
                                 node.name, levels_of(node)),
                     "use setting 'device' cpu");
  }
}

// What a convolution or a norm of the graph asks for that no kernel computes.
void check_layers(const nn::Graph& graph) {
  for (const nn::Node& node : graph.nodes) {
    const auto* const convolution = std::get_if<nn::Convolution>(&node.layer);
    if (convolution && !convolution->is_evenly_padded()) {
      throw UsageError(fmt::format("the cuda backend pads as much below and right as above and left, '{}' differs by "
                                   "{} and {}",
                                   node.name, convolution->extra_h, convolution->extra_w),
                       "use setting 'device' cpu");
    }
    if (std::holds_alternative<nn::LocalResponseNorm>(node.layer)) {
      throw UsageError(fmt::format("the cuda backend has no local response norm, which '{}' is", node.name),
                       "use setting 'device' cpu");
    }
  }
}

class CudaBackend final : public Backend {
 public:
  CudaBackend(DeviceFacts facts, std::function<std::shared_ptr<Device>()> open)
      : facts_(std::move(facts)), opening_(std::make_shared<Opening>(std::move(open))) {}
  std::string name() const override { return "cuda"; }
  std::string description() const override { return facts_.description; }
  const char* why_not(DType dtype) const override {
    if (dtype == DType::bfloat16 && !facts_.has_bfloat16) return "this GPU has no bfloat16: it begins with Ampere";
    return nullptr;
  }
  bool same_bits() const override { return facts_.same_bits; }
  DType fastest_dtype() const override { return facts_.has_bfloat16 ? DType::bfloat16 : DType::float32; }
  std::unique_ptr<Executable> compile(const nn::Graph& graph, const CompileOptions& options) const override {
    check_dtype(*this, options.dtype);
    check_levels(graph);
    check_layers(graph);
    return std::make_unique<CudaExecutable>(opening_->device(), graph, options);
  }
  BatchWish batches() const override {
    return {.as_bytes = true, .memory = [opening = opening_](std::size_t bytes) {
              const std::shared_ptr<Device> device = opening->device();
              return std::shared_ptr<std::byte>(device->allocate_host(bytes),
                                                [device](std::byte* memory) { device->release_host(memory); });
            }};
  }

 private:
  const DeviceFacts facts_;
  const std::shared_ptr<Opening> opening_;
};

}  // namespace

std::unique_ptr<Backend> make_backend_on(DeviceFacts facts, std::function<std::shared_ptr<Device>()> open) {
  return std::make_unique<CudaBackend>(std::move(facts), std::move(open));
}

}  // namespace dtrain::backend::cuda
