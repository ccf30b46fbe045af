#include "tensor_log.hpp"

#include <fmt/format.h>

#include <cmath>

namespace dtrain::job {

void TensorLog::on_step(const train::StepReport& report) {
  if ((report.step + 1) % static_cast<std::uint64_t>(every_) != 0) return;
  const backend::ModelState state = executable_.read_state();
  for (const nn::TensorView& tensor : graph_.parameters) {
    double sum = 0;
    for (std::int64_t i = 0; i < tensor.size; ++i) {
      const double value = state.parameters[static_cast<std::size_t>(tensor.offset + i)];
      sum += value * value;
    }
    reporter_.note(fmt::format("Batch: {:7} {:30} {:.6g}", report.step, tensor.name,
                               std::sqrt(sum / static_cast<double>(tensor.size))));
  }
}

}  // namespace dtrain::job
