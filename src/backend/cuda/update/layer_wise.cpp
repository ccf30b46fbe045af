#include "layer_wise.hpp"

#include <algorithm>
#include <cmath>

#include <dtrain/backend/checks.hpp>

namespace dtrain::backend::cuda {
namespace {

constexpr std::uint64_t kStep = 256;
// Elements of a part at least, and parts of a tensor at most: one thread adds them up.
constexpr std::int64_t kFewestElements = 512, kMostParts = 1024;

std::uint64_t aligned(std::uint64_t bytes) { return (bytes + kStep - 1) / kStep * kStep; }

}  // namespace

struct TensorLengths::Layout {
  explicit Layout(const nn::Graph& graph) : parameters(graph.parameter_count) {
    const std::vector<bool> held = held_parameters(graph);
    for (std::size_t k = 0; k < held.size(); ++k) {
      if (held[k]) continue;
      const nn::TensorView& view = graph.parameters[k];
      const std::int64_t number = std::clamp<std::int64_t>(packs_of(view.size, kFewestElements), 1, kMostParts);
      tensors.push_back({.flat = view.offset,
                         .size = view.size,
                         .first_part = static_cast<std::int32_t>(parts),
                         .parts = static_cast<std::int32_t>(number)});
      parts += number;
    }
    part_squares = aligned(std::max<std::size_t>(1, tensors.size()) * sizeof(UpdatedTensor));
    squares = part_squares + aligned(static_cast<std::uint64_t>(parts) * sizeof(TensorSquares));
    bytes = squares + aligned(tensors.size() * sizeof(TensorSquares)) + kStep;
  }
  std::vector<UpdatedTensor> tensors;
  std::int64_t parts = 0, parameters = 0;
  std::uint64_t part_squares = 0, squares = 0, bytes = 0;
};

TensorLengths::TensorLengths(Device& device, const nn::Graph& graph) : TensorLengths(device, Layout(graph)) {}

TensorLengths::TensorLengths(Device& device, const Layout& layout)
    : device_(device),
      tensors_(static_cast<std::int32_t>(layout.tensors.size())),
      parts_(layout.parts),
      parameters_(layout.parameters),
      part_squares_(layout.part_squares),
      squares_(layout.squares),
      memory_(device, layout.bytes) {
  const std::size_t size = layout.tensors.size() * sizeof(UpdatedTensor);
  if (size > 0) device.upload(memory_.data(), layout.tensors.data(), size);
}

UpdatedTensors TensorLengths::table() const {
  return {reinterpret_cast<const UpdatedTensor*>(memory_.data()), tensors_};
}

void TensorLengths::add_squares(const float* parameters, const UpdateStep* step, std::vector<Call>& calls) const {
  calls.push_back({"lengths of tensors: squares", SquareParts{table(), step, parameters, at(part_squares_), parts_}});
  calls.push_back({"lengths of tensors", SquaresOfTensors{table(), at(part_squares_), at(squares_)}});
}

double TensorLengths::length_of_sum() const {
  std::vector<TensorSquares> squares(static_cast<std::size_t>(tensors_));
  if (!squares.empty()) device_.download(squares.data(), at(squares_), squares.size() * sizeof(TensorSquares));
  double total = 0;
  for (const TensorSquares& each : squares) total += each.sum;
  return std::sqrt(total);
}

void TensorLengths::add_cut(const float* parameters, UpdateStep* step, std::vector<Call>& calls) const {
  add_squares(parameters, step, calls);
  calls.push_back({"norm of the gradients", CutNorm{at(squares_), tensors_, step}});
}

void TensorLengths::add_moves(float* parameters, const std::uint8_t* flags, const UpdateStep* step,
                              std::vector<Call>& calls) const {
  add_squares(parameters, step, calls);
  calls.push_back({"steps by tensor", MoveLayerWise{table(), step, at(squares_), flags, parameters, parameters_}});
}

}  // namespace dtrain::backend::cuda
