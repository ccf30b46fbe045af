#include "cuda_backend.hpp"

#include <utility>

#include <dtrain/backend/checks.hpp>

#include "executable.hpp"

namespace dtrain::backend::cuda {
namespace {

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  std::string name() const override { return "cuda"; }
  std::string description() const override { return device_->description(); }
  const char* why_not(DType dtype) const override {
    if (dtype == DType::float16) return "it would need loss scaling, which this dtrain does not do; use bfloat16";
    if (dtype == DType::bfloat16 && !device_->has_bfloat16()) return "this GPU has no bfloat16: it begins with Ampere";
    return nullptr;
  }
  DType fastest_dtype() const override { return device_->has_bfloat16() ? DType::bfloat16 : DType::float32; }
  std::unique_ptr<Executable> compile(const nn::Graph& graph, const CompileOptions& options) const override {
    check_dtype(*this, options.dtype);
    return std::make_unique<CudaExecutable>(device_, graph, options);
  }

 private:
  std::shared_ptr<Device> device_;
};

}  // namespace

std::unique_ptr<Backend> make_backend_on(std::shared_ptr<Device> device) {
  return std::make_unique<CudaBackend>(std::move(device));
}

}  // namespace dtrain::backend::cuda
