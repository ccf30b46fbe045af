#include <algorithm>

#include "fuzz.hpp"
#include "weights/torch_file.hpp"

namespace dtrain::fuzz {
namespace {

std::string golden(const char* name) { return read_file(Path(DTRAIN_TESTS_DIR) / "unit/train/golden" / name); }

// Every number of every tensor is read, so that a place outside of the file shows.
void read_all(const std::string& input) {
  std::vector<float> values;
  for (const train::ForeignTensor& tensor : train::parse_torch_file(bytes_of(input), "input")) {
    constexpr std::size_t kLargest = 1 << 20;
    std::size_t size = 1;
    for (const std::int64_t extent : tensor.shape)
      size = std::min(kLargest + 1, size) * static_cast<std::size_t>(extent);
    if (!train::is_real(tensor) || size > kLargest) continue;
    values.resize(size);
    train::copy_values(tensor, values);
  }
}

}  // namespace

std::vector<Target> weights_targets() {
  return {{"weights-zip", {golden("state_dict.pt"), golden("wrapped.pt")}, read_all},
          {"weights-pickle", {golden("old.pt")}, read_all}};
}

}  // namespace dtrain::fuzz
