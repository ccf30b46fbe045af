#include <algorithm>

#include "foreign/npz_file.hpp"
#include "foreign/torch_file.hpp"
#include "fuzz.hpp"
#include "weights/onnx_network.hpp"

namespace dtrain::fuzz {
namespace {

std::string golden(const char* name) { return read_file(Path(DTRAIN_TESTS_DIR) / "unit/train/golden" / name); }

// Every number of every tensor is read, so that a place outside of the file shows.
void read_all(const std::vector<train::ForeignTensor>& tensors) {
  std::vector<float> values;
  for (const train::ForeignTensor& tensor : tensors) {
    constexpr std::size_t kLargest = 1 << 20;
    std::size_t size = 1;
    for (const std::int64_t extent : tensor.shape)
      size = std::min(kLargest + 1, size) * static_cast<std::size_t>(extent);
    if (!train::is_real(tensor) || size > kLargest) continue;
    values.resize(size);
    train::copy_values(tensor, values);
  }
}

void read_torch(const std::string& input) { read_all(train::parse_torch_file(bytes_of(input), "input")); }

void read_npz(const std::string& input) {
  const train::NpzFile npz = train::parse_npz_file(bytes_of(input), "input");
  read_all(npz.tensors);
}

void read_onnx(const std::string& input) {
  const train::OnnxFile onnx = train::parse_onnx_file(bytes_of(input), "input");
  read_all(onnx.tensors);
  read_all(train::network_of_onnx(onnx, "input").tensors);
}

}  // namespace

std::vector<Target> weights_targets() {
  return {{"weights-zip", {golden("state_dict.pt"), golden("wrapped.pt")}, read_torch},
          {"weights-pickle", {golden("old.pt")}, read_torch},
          {"weights-npz", {golden("arrays.npz"), golden("compressed.npz")}, read_npz},
          {"weights-onnx", {golden("model.onnx")}, read_onnx}};
}

}  // namespace dtrain::fuzz
