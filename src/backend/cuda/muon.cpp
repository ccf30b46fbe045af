#include "muon.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace dtrain::backend::cuda {
namespace {

constexpr std::uint64_t kStep = 256;
// Fewer elements are multiplied sooner than a library is called for them: a grouped convolution may have thousands of
// such matrices.
constexpr std::int64_t kLargeElements = 8192;

bool is_large(const nn::WeightMatrix& weight) { return weight.size() >= kLargeElements; }

// Sizes for which cuDNN has engines on tensor cores: whole vectors, and more of them where that costs little.
std::int32_t rounded_up(std::int32_t columns) {
  constexpr std::uint32_t kLeast = 8, kMost = 64;
  const auto step = std::clamp(std::bit_ceil(static_cast<std::uint32_t>(columns)), kLeast, kMost);
  return static_cast<std::int32_t>(packs_of(columns, step) * step);
}

}  // namespace

MuonLayout::MuonLayout(const nn::Graph& graph, DType of) : dtype(of) {
  std::vector<nn::WeightMatrix> weights = nn::weight_matrices(graph);
  const auto small = std::stable_partition(weights.begin(), weights.end(), cuda::is_large);
  std::int64_t most_sums = 0;
  for (auto weight = weights.begin(); weight != weights.end(); ++weight) {
    add(*weight);
    if (weight >= small) continue;
    large_cells = cells;
    large_squares = squares;
    const MuonMatrix& m = matrices.back();
    const ConvolutionShape shape = ConvolutionShape::one_pixel(m.high, m.low, m.low);
    most_sums = std::max(most_sums, cut_weight_rows(shape).parts * shape.weights());
  }
  const std::size_t value = dtype == DType::float32 ? 4 : 2;
  table = take(static_cast<std::int64_t>(matrices.size()), sizeof(MuonMatrix));
  part_sums = take(parts, sizeof(MuonLength));
  lengths = take(static_cast<std::int64_t>(matrices.size()), sizeof(MuonLength));
  y = take(cells, value);
  next = take(cells, value);
  once = take(squares, value);
  twice = take(squares, value);
  sums = take(most_sums, sizeof(float));
}

void MuonLayout::add(const nn::WeightMatrix& weight) {
  MuonMatrix m{.flat = weight.first, .rows = weight.rows, .columns = weight.columns, .scale_free = weight.scale_free};
  m.high = std::max(m.rows, m.columns);
  m.low = rounded_up(m.width());
  m.parts = static_cast<std::int32_t>(packs_of(m.size(), kMuonPart));
  m.first_part = std::exchange(parts, parts + m.parts);
  m.first_cell = std::exchange(cells, cells + m.cells());
  m.first_square = std::exchange(squares, squares + m.square());
  matrices.push_back(m);
}

std::uint64_t MuonLayout::take(std::int64_t things, std::size_t thing_bytes) {
  const std::uint64_t size = static_cast<std::uint64_t>(things) * thing_bytes;
  return std::exchange(bytes, bytes + (size + kStep - 1) / kStep * kStep);
}

Muon::Muon(Device& device, MuonLayout layout)
    : layout_(std::move(layout)), memory_(device, std::max(layout_.bytes, kStep)) {
  const std::size_t size = layout_.matrices.size() * sizeof(MuonMatrix);
  if (size > 0) device.upload(at<void>(layout_.table), layout_.matrices.data(), size);
}

MuonTable Muon::table() const {
  return {at<MuonMatrix>(layout_.table), static_cast<std::int32_t>(layout_.matrices.size())};
}

void Muon::add_calls(float* parameters, const UpdateStep* step, int iterations, std::vector<Call>& calls) const {
  if (layout_.matrices.empty()) return;
  with_type(layout_.dtype, [&]<typename T>(T) { add<T>(parameters, step, iterations, calls); });
}

template <typename T>
void Muon::add(float* parameters, const UpdateStep* step, int iterations, std::vector<Call>& calls) const {
  auto* const part_sums = at<MuonLength>(layout_.part_sums);
  auto* const lengths = at<MuonLength>(layout_.lengths);
  auto *from = at<T>(layout_.y), *to = at<T>(layout_.next);
  calls.push_back({"muon: squares", MuonSquares{table(), step, parameters, part_sums, layout_.parts}});
  calls.push_back({"muon: lengths", MuonLengths{table(), part_sums, lengths}});
  calls.push_back({"muon: its start", MuonLoad<T>{table(), step, lengths, from, layout_.cells}});
  for (int iteration = 0; iteration < iterations; ++iteration) {
    add_iteration<T>(step, from, to, calls);
    std::swap(from, to);
  }
  calls.push_back({"muon: the step", MuonStep<T>{table(), step, from, lengths, parameters, layout_.cells}});
}

template <typename T>
void Muon::add_iteration(const UpdateStep* step, const T* from, T* to, std::vector<Call>& calls) const {
  const MuonLayout& l = layout_;
  auto *const once = at<T>(l.once), *const twice = at<T>(l.twice);
  const auto for_large = [&](const char* name, auto product_of) {
    for (const MuonMatrix& m : l.matrices) {
      if (l.is_large(m)) calls.push_back({name, product_of(m)});
    }
  };
  for_large("muon: Y'Y", [&](const MuonMatrix& m) {
    const T* const y = from + m.first_cell;
    return product<T>(Direction::backward_weights, m.high, m.low, y, y, once + m.first_square);
  });
  calls.push_back({"muon: Y'Y of small ones", MuonGram<T>{table(), from, once, l.large_squares, l.squares}});
  for_large("muon: its square", [&](const MuonMatrix& m) {
    const T* const s = once + m.first_square;
    return product<T>(Direction::forward, m.low, m.low, s, s, twice + m.first_square);
  });
  calls.push_back({"muon: squares of small ones", MuonSquare<T>{table(), once, twice, l.large_squares, l.squares}});
  calls.push_back({"muon: the polynomial", MuonPolynomial<T>{table(), step, once, twice, l.squares}});
  for_large("muon: the next Y", [&](const MuonMatrix& m) {
    return product<T>(Direction::forward, m.high, m.low, from + m.first_cell, twice + m.first_square,
                      to + m.first_cell);
  });
  calls.push_back({"muon: the next Y of small ones", MuonAdvance<T>{table(), twice, from, to, l.large_cells, l.cells}});
}

template <typename T>
Convolution Muon::product(Direction direction, std::int32_t rows, std::int32_t low, const T* a, const T* b,
                          T* to) const {
  return {.direction = direction,
          .shape = ConvolutionShape::one_pixel(rows, low, low),
          .dtype = layout_.dtype,
          .a = a,
          .b = b,
          .result = to,
          .sums = at<float>(layout_.sums)};
}

}  // namespace dtrain::backend::cuda
