#include <fmt/format.h>

#include <dtrain/backend/backend.hpp>
#include <dtrain/backend/checks.hpp>

#include "bfloat16.hpp"
#include "cpu_executable.hpp"
#include "onednn.hpp"

namespace dtrain::backend {
namespace cpu {
namespace {

class CpuBackend final : public Backend {
 public:
  std::string name() const override { return "cpu"; }
  std::string description() const override {
    return fmt::format("{}; own kernels for {}{}", onednn_description(), select_kernels().name,
                       bfloat16_description(this_cpu()));
  }
  const char* why_not(DType dtype) const override {
    if (dtype == DType::float16) return "computing in float16 needs a GPU; use bfloat16 or float32 on a CPU";
    if (dtype == DType::bfloat16 && !__builtin_cpu_supports("avx512bw")) {
      return "bfloat16 needs a CPU with AVX-512, which this one lacks; use float32";
    }
    return nullptr;
  }
  DType fastest_dtype() const override {
    return why_not(DType::bfloat16) || widens_bfloat16(this_cpu()) ? DType::float32 : DType::bfloat16;
  }
  bool same_bits() const override { return true; }
  BatchWish batches() const override { return {}; }
  std::unique_ptr<Executable> compile(const nn::Graph& graph, const CompileOptions& options) const override {
    check_dtype(*this, options.dtype);
    return std::make_unique<CpuExecutable>(graph, options);
  }
};

}  // namespace
}  // namespace cpu

std::unique_ptr<Backend> make_cpu_backend() { return std::make_unique<cpu::CpuBackend>(); }

}  // namespace dtrain::backend
