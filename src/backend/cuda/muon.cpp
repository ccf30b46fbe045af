#include "muon.hpp"

#include <algorithm>
#include <utility>

#include <dtrain/nn/parameter_groups.hpp>

namespace dtrain::backend::cuda {
namespace {

constexpr std::uint64_t kStep = 256;

std::int32_t whole_tiles(std::int32_t size) { return static_cast<std::int32_t>(packs_of(size, kTile)) * kTile; }

}  // namespace

std::vector<MuonMatrix> Muon::matrices_of(const nn::Graph& graph) {
  std::vector<MuonMatrix> matrices;
  for (const nn::WeightMatrix& weight : nn::weight_matrices(graph)) {
    const Totals before = totals_of(matrices);
    MuonMatrix m{.flat = weight.first, .rows = weight.rows, .columns = weight.columns, .scale_free = weight.scale_free};
    m.low = whole_tiles(std::min(m.rows, m.columns));
    m.high = whole_tiles(std::max(m.rows, m.columns));
    m.parts = static_cast<std::int32_t>(packs_of(m.size(), kMuonPart));
    m.depths = static_cast<std::int32_t>(packs_of(m.high, kMuonDepth));
    m.first_element = before.elements;
    m.first_part = before.parts;
    m.first_cell = before.cells;
    m.first_square = before.squares;
    m.first_depth = before.depths;
    matrices.push_back(m);
  }
  return matrices;
}

// Of the last matrix and all before it.
Muon::Totals Muon::totals_of(const std::vector<MuonMatrix>& matrices) {
  if (matrices.empty()) return {};
  const MuonMatrix& last = matrices.back();
  const std::int64_t square = std::int64_t{last.low} * last.low;
  return {.elements = last.first_element + last.size(),
          .parts = last.first_part + last.parts,
          .cells = last.first_cell + std::int64_t{last.low} * last.high,
          .squares = last.first_square + square,
          .depths = last.first_depth + last.depths * square};
}

Muon::Places Muon::places_of(std::size_t number, const Totals& totals) {
  Places places;
  const auto take = [&](std::int64_t things, std::size_t bytes) {
    const std::uint64_t size = static_cast<std::uint64_t>(things) * bytes;
    return std::exchange(places.all, places.all + packs_of(static_cast<std::int64_t>(size), kStep) * kStep);
  };
  places.table = take(static_cast<std::int64_t>(number), sizeof(MuonMatrix));
  places.sums = take(totals.parts, sizeof(MuonLength));
  places.lengths = take(static_cast<std::int64_t>(number), sizeof(MuonLength));
  places.x = take(totals.cells, sizeof(float));
  places.next = take(totals.cells, sizeof(float));
  places.transposed = take(totals.cells, sizeof(float));
  places.depths = take(totals.depths, sizeof(float));
  places.squares = take(totals.squares, sizeof(float));
  places.rests = take(totals.squares, sizeof(float));
  return places;
}

Muon::Muon(Device& device, const nn::Graph& graph)
    : matrices_(matrices_of(graph)),
      totals_(totals_of(matrices_)),
      places_(places_of(matrices_.size(), totals_)),
      memory_(device, std::max(places_.all, kStep)) {
  if (!matrices_.empty()) {
    device.upload(at<void>(places_.table), matrices_.data(), matrices_.size() * sizeof(MuonMatrix));
  }
}

void Muon::add_calls(float* parameters, const float* directions, const Update& update, std::vector<Call>& calls) const {
  if (matrices_.empty()) return;
  const MuonTable table{at<MuonMatrix>(places_.table), static_cast<std::int32_t>(matrices_.size())};
  auto* const sums = at<MuonLength>(places_.sums);
  auto* const lengths = at<MuonLength>(places_.lengths);
  auto* const x = at<float>(places_.x);
  calls.push_back({"muon: squares", MuonSquares{table, directions, parameters, sums, totals_.parts}});
  calls.push_back({"muon: lengths", MuonLengths{table, sums, lengths}});
  calls.push_back(
      {"muon: its start", MuonLoad{table, directions, lengths, x, at<float>(places_.transposed), totals_.cells}});
  add_iteration(update.rule.newton_schulz, calls);
  const float* const end = update.rule.newton_schulz.steps % 2 ? at<float>(places_.next) : x;
  calls.push_back({"muon: the step", MuonStep{table, end, lengths, parameters, totals_.elements, update.learning_rate,
                                              update.rule.weight_decay}});
}

void Muon::add_iteration(const nn::NewtonSchulz& rule, std::vector<Call>& calls) const {
  const MuonTable table{at<MuonMatrix>(places_.table), static_cast<std::int32_t>(matrices_.size())};
  auto* const transposed = at<float>(places_.transposed);
  auto* const depths = at<float>(places_.depths);
  auto* const squares = at<float>(places_.squares);
  auto* const rests = at<float>(places_.rests);
  auto *from = at<float>(places_.x), *to = at<float>(places_.next);
  for (int step = 0; step < rule.steps; ++step) {
    calls.push_back({"muon: parts of X X'", MuonSquareParts{table, transposed, depths, totals_.depths}});
    calls.push_back({"muon: X X'", MuonSquare{table, depths, squares, totals_.squares}});
    calls.push_back({"muon: b X X' + c (X X')^2", MuonRest{table, squares, rests, totals_.squares, rule.b, rule.c}});
    calls.push_back({"muon: the next X", MuonAdvance{table, rests, from, to, transposed, totals_.cells, rule.a}});
    std::swap(from, to);
  }
}

}  // namespace dtrain::backend::cuda
