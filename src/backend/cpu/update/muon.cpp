#include "muon.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace dtrain::backend::cpu {
namespace {

constexpr std::int64_t kChunk = 8192;

// to [columns, rows] = from [rows, columns], in squares that stay in the cache.
void transpose(const float* from, float* to, int rows, int columns) {
  constexpr int kSquare = 32;
  for (int top = 0; top < rows; top += kSquare) {
    for (int left = 0; left < columns; left += kSquare) {
      for (int row = top; row < std::min(rows, top + kSquare); ++row) {
        for (int column = left; column < std::min(columns, left + kSquare); ++column) {
          to[std::int64_t{column} * rows + row] = from[std::int64_t{row} * columns + column];
        }
      }
    }
  }
}

}  // namespace

Muon::Muon(const nn::Graph& graph, const Kernels& kernels, int parts) : kernels_(kernels), parts_(parts) {
  const auto take = [&](std::int64_t floats) { return std::exchange(floats_, floats_ + floats); };
  for (const nn::WeightMatrix& of : nn::weight_matrices(graph)) {
    const int index = static_cast<int>(items_.size());
    Item item{.of = of, .rows = std::min(of.rows, of.columns), .columns = std::max(of.rows, of.columns)};
    const std::int64_t square = std::int64_t{item.rows} * item.rows;
    item.direction = take(of.size());
    item.x = item.tall() ? take(of.size()) : item.direction;
    item.square = take(square);
    item.rest = take(square);
    item.first_chunk = static_cast<std::int64_t>(chunks_.size());
    for (std::int64_t first = 0; first < of.size(); first += kChunk) {
      chunks_.push_back({.item = index, .first = first, .count = std::min(kChunk, of.size() - first)});
    }
    for (int first = 0; first < item.rows; first += kPanelColumns) square_panels_.push_back({index, first});
    for (int first = 0; first < item.columns; first += kPanelColumns) x_panels_.push_back({index, first});
    panel_floats_ = std::max(panel_floats_, std::int64_t{item.columns} * kPanelColumns);
    items_.push_back(item);
  }
}

void Muon::ensure_scratch() {
  scratch_.grow(static_cast<std::size_t>(floats_) * sizeof(float));
  panels_.grow(static_cast<std::size_t>(panel_floats_ * parts_) * sizeof(float));
}

void Muon::move_matrices(std::span<const float> gradients, double count, const Update& update, const InParts& in_parts,
                         ModelState& state) {
  ensure_scratch();
  const StepNumbers numbers{.count = count,
                            .rate = update.learning_rate,
                            .momentum = update.rule.momentum,
                            .decay = update.rule.weight_decay,
                            .most = most_of(update.rule)};
  share(chunks_, in_parts, [&](Chunk& chunk, int) {
    const Item& item = items_[static_cast<std::size_t>(chunk.item)];
    const std::int64_t first = item.of.first + chunk.first;
    float* const direction = at(item.direction + chunk.first);
    kernels_.muon_direction(numbers, gradients.data() + first, state.optimizer.data() + first, direction, chunk.count);
    chunk.squares = kernels_.sum_of_squares(direction, chunk.count);
    chunk.weight_squares = kernels_.sum_of_squares(state.parameters.data() + first, chunk.count);
  });
  add_up_squares();
  share(items_, in_parts, [&](Item& item, int) { load_x(item); });
  iterate(update.rule.newton_schulz, in_parts);
  share(items_, in_parts, [&](Item& item, int) { unload_x(item); });
  share(chunks_, in_parts, [&](const Chunk& chunk, int) {
    const Item& item = items_[static_cast<std::size_t>(chunk.item)];
    kernels_.muon_step(numbers, item.scale, at(item.direction + chunk.first),
                       state.parameters.data() + item.of.first + chunk.first, chunk.count);
  });
}

// In the order of the chunks.
void Muon::add_up_squares() {
  for (std::size_t k = 0; k < items_.size(); ++k) {
    Item& item = items_[k];
    double squares = 0, weight_squares = 0;
    for (auto chunk = static_cast<std::size_t>(item.first_chunk);
         chunk < chunks_.size() && chunks_[chunk].item == static_cast<int>(k); ++chunk) {
      squares += chunks_[chunk].squares;
      weight_squares += chunks_[chunk].weight_squares;
    }
    item.length = static_cast<float>(std::sqrt(squares)) + nn::NewtonSchulz::kLeastNorm;
    item.scale = item.of.scale_free && weight_squares > 0 ? std::sqrt(item.of.rows / weight_squares) : 1;
  }
}

void Muon::load_x(Item& item) {
  float* const direction = at(item.direction);
  const auto size = static_cast<std::size_t>(item.of.size());
  for (std::size_t k = 0; k < size; ++k) direction[k] /= item.length;
  if (item.tall()) transpose(direction, at(item.x), item.of.rows, item.of.columns);
}

void Muon::unload_x(Item& item) {
  if (item.tall()) transpose(at(item.x), at(item.direction), item.rows, item.columns);
}

void Muon::iterate(const nn::NewtonSchulz& rule, const InParts& in_parts) {
  const auto multiply = [&](const std::vector<Panel>& panels, auto product_of) {
    share(panels, in_parts, [&](const Panel& panel, int part) {
      const Item& item = items_[static_cast<std::size_t>(panel.item)];
      kernels_.product_panel(product_of(item), panel.first, panels_.as<float>() + part * panel_floats_);
    });
  };
  for (int step = 0; step < rule.steps; ++step) {
    multiply(square_panels_, [&](const Item& item) {
      return MatrixProduct{.rows = item.rows,
                           .inner = item.columns,
                           .columns = item.rows,
                           .left = at(item.x),
                           .right = at(item.x),
                           .right_transposed = true,
                           .out = at(item.square)};
    });
    multiply(square_panels_, [&](const Item& item) {
      return MatrixProduct{.rows = item.rows,
                           .inner = item.rows,
                           .columns = item.rows,
                           .left = at(item.square),
                           .right = at(item.square),
                           .addend = at(item.square),
                           .addend_factor = rule.b,
                           .factor = rule.c,
                           .out = at(item.rest)};
    });
    multiply(x_panels_, [&](const Item& item) {
      return MatrixProduct{.rows = item.rows,
                           .inner = item.rows,
                           .columns = item.columns,
                           .left = at(item.rest),
                           .right = at(item.x),
                           .addend = at(item.x),
                           .addend_factor = rule.a,
                           .out = at(item.x)};
    });
  }
}

}  // namespace dtrain::backend::cpu
