#include "cuda_backend.hpp"

#include <utility>

#include <dtrain/backend/checks.hpp>

#include "executable.hpp"

namespace dtrain::backend::cuda {
namespace {

class CudaBackend final : public Backend {
 public:
  CudaBackend(DeviceFacts facts, std::function<std::shared_ptr<Device>()> open)
      : facts_(std::move(facts)), open_(std::move(open)) {}
  std::string name() const override { return "cuda"; }
  std::string description() const override { return facts_.description; }
  const char* why_not(DType dtype) const override {
    if (dtype == DType::float16) return "it would need loss scaling, which this dtrain does not do; use bfloat16";
    if (dtype == DType::bfloat16 && !facts_.has_bfloat16) return "this GPU has no bfloat16: it begins with Ampere";
    return nullptr;
  }
  DType fastest_dtype() const override { return facts_.has_bfloat16 ? DType::bfloat16 : DType::float32; }
  std::unique_ptr<Executable> compile(const nn::Graph& graph, const CompileOptions& options) const override {
    check_dtype(*this, options.dtype);
    if (!device_) device_ = open_();
    return std::make_unique<CudaExecutable>(device_, graph, options);
  }

 private:
  const DeviceFacts facts_;
  const std::function<std::shared_ptr<Device>()> open_;
  mutable std::shared_ptr<Device> device_;
};

}  // namespace

std::unique_ptr<Backend> make_backend_on(DeviceFacts facts, std::function<std::shared_ptr<Device>()> open) {
  return std::make_unique<CudaBackend>(std::move(facts), std::move(open));
}

}  // namespace dtrain::backend::cuda
