#include "../described_gpu.hpp"

#include "plans.hpp"

namespace dtrain::backend::cuda {
namespace {

class CudnnDescribedGpu final : public DescribedGpu {
 public:
  CudnnDescribedGpu(const std::string& cudnn, const std::string& properties)
      : cudnn_(load_cudnn(cudnn)), described_(cudnn_, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR) {
    described_.set_all<char>(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, properties);
    described_.finish();
  }
  std::vector<EngineFacts> engines(const Convolution& work) const override {
    return Plans(target(), work, {}, {}).engines();
  }
  std::optional<Choice> choice(const Convolution& work, const EngineRules& rules,
                               const std::string& preferred) const override {
    Plans plans(target(), work, rules, preferred);
    std::optional<Plan> plan = plans.next();
    if (!plan) return std::nullopt;
    return Choice{std::move(plan->engine), plan->workspace};
  }

 private:
  CudnnTarget target() const { return {.cudnn = cudnn_, .described = &described_}; }
  const CudnnFunctions cudnn_;
  Descriptor described_;
};

}  // namespace

std::unique_ptr<DescribedGpu> describe_gpu(const std::string& cudnn, const std::string& properties) {
  return std::make_unique<CudnnDescribedGpu>(cudnn, properties);
}

}  // namespace dtrain::backend::cuda
