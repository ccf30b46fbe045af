#include "muon.hpp"

#include <algorithm>
#include <utility>

namespace dtrain::backend::cuda {
namespace {

constexpr std::uint64_t kStep = 256;
constexpr std::int32_t kWidestPack = 8;  // elements, in two bytes

// Three products: high x low x low, low x low x low and high x low x low.
double multiplications(double high, double low) { return low * low * (2 * high + low); }

double in_whole_tiles(std::int64_t length) { return static_cast<double>(packs_of(length, kMuonTile) * kMuonTile); }

}  // namespace

MuonLayout::MuonLayout(const nn::Graph& graph, DType of) : dtype(of) {
  for (const nn::WeightMatrix& weight : nn::weight_matrices(graph)) add(weight);
  const std::size_t value = dtype == DType::float32 ? 4 : 2;
  table = take(static_cast<std::int64_t>(matrices.size()), sizeof(MuonMatrix));
  part_sums = take(parts, sizeof(MuonLength));
  fold_sums = take(folds, sizeof(MuonLength));
  lengths = take(static_cast<std::int64_t>(matrices.size()), sizeof(MuonLength));
  y = take(cells, value);
  next = take(cells, value);
  once = take(squares, value);
  twice = take(squares, value);
}

void MuonLayout::add(const nn::WeightMatrix& weight) {
  MuonMatrix m{.flat = weight.first, .rows = weight.rows, .columns = weight.columns, .scale_free = weight.scale_free};
  m.high = std::max(m.rows, m.columns);
  m.low = static_cast<std::int32_t>(packs_of(m.width(), kWidestPack)) * kWidestPack;
  m.parts = static_cast<std::int32_t>(packs_of(m.size(), kMuonPart));
  m.folds = static_cast<std::int32_t>(packs_of(m.parts, kMuonFold));
  m.first_part = std::exchange(parts, parts + m.parts);
  m.first_fold = std::exchange(folds, folds + m.folds);
  m.first_cell = std::exchange(cells, cells + m.cells());
  m.first_square = std::exchange(squares, squares + m.square());
  m.first_cell_tile = std::exchange(cell_tiles, cell_tiles + m.cell_tiles());
  m.first_square_tile = std::exchange(square_tiles, square_tiles + m.square_tiles());
  matrices.push_back(m);
}

std::uint64_t MuonLayout::take(std::int64_t things, std::size_t thing_bytes) {
  const std::uint64_t size = static_cast<std::uint64_t>(things) * thing_bytes;
  return std::exchange(bytes, bytes + (size + kStep - 1) / kStep * kStep);
}

MuonCost cost_of(const MuonLayout& layout) {
  MuonCost cost;
  double highest = 0, widest = 0;
  for (const MuonMatrix& m : layout.matrices) {
    const double high = m.high, low = m.width(), tiled_low = in_whole_tiles(m.low);
    cost.needed += multiplications(high, low);
    // Depth is not padded to tiles: what is behind it is not loaded.
    cost.in_tiles += tiled_low * tiled_low * (high + low) + in_whole_tiles(m.high) * tiled_low * low;
    highest = std::max(highest, high), widest = std::max(widest, low);
  }
  cost.in_one_stack = static_cast<double>(layout.matrices.size()) * multiplications(highest, widest);
  return cost;
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
  const MuonLayout& l = layout_;
  auto *const part_sums = at<MuonLength>(l.part_sums), *const fold_sums = at<MuonLength>(l.fold_sums);
  auto* const lengths = at<MuonLength>(l.lengths);
  auto *from = at<T>(l.y), *to = at<T>(l.next);
  calls.push_back({"muon: squares", MuonSquares{table(), step, parameters, part_sums, l.parts}});
  calls.push_back({"muon: their folds", MuonFolds{table(), part_sums, fold_sums, l.folds}});
  calls.push_back({"muon: lengths", MuonLengths{table(), fold_sums, lengths}});
  calls.push_back({"muon: its start", MuonLoad<T>{table(), step, lengths, from, l.cells}});
  for (int iteration = 0; iteration < iterations; ++iteration) {
    add_iteration<T>(step, from, to, calls);
    std::swap(from, to);
  }
  calls.push_back({"muon: the step", MuonStep<T>{table(), step, from, lengths, parameters, l.cells}});
}

template <typename T>
void Muon::add_iteration(const UpdateStep* step, const T* from, T* to, std::vector<Call>& calls) const {
  const MuonLayout& l = layout_;
  auto *const once = at<T>(l.once), *const twice = at<T>(l.twice);
  const auto add_product = [&]<typename Product>(const char* name, const Product& product, std::int64_t tiles) {
    calls.push_back({name, Tiled<Product>{product, tiles}});
  };
  add_product("muon: Y'Y", MuonGram<T>{table(), from, once, l.squares}, l.square_tiles);
  add_product("muon: the polynomial", MuonPolynomial<T>{table(), step, once, twice, l.squares}, l.square_tiles);
  add_product("muon: the next Y", MuonAdvance<T>{table(), twice, from, to, l.cells}, l.cell_tiles);
}

}  // namespace dtrain::backend::cuda
