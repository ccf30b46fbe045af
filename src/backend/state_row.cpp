#include "state_row.hpp"

namespace dtrain::backend {

std::int64_t Executable::state_size() const { return row_size(state()); }

std::vector<float> Executable::state_floats(FloatRange range) const {
  std::vector<float> floats(static_cast<std::size_t>(range.size));
  visit_row(state(), range, [&](const std::vector<float>& buffer, auto first, auto size, auto done) {
    std::copy_n(buffer.begin() + first, size, floats.begin() + done);
  });
  return floats;
}

}  // namespace dtrain::backend
