#include "program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include <dtrain/base/error.hpp>

#include "../memory_plan.hpp"

namespace dtrain::backend::cpu {
namespace {

// What one thread's chunk of the largest tensor may take: half a dozen of them share the core's second-level cache.
constexpr std::size_t kChunkBytes = 192 * 1024;

// First and last operation of each tensor; a tensor without operations has first > last.
struct Use {
  int first = 1 << 30, last = -1;
  void at(int op) { first = std::min(first, op), last = std::max(last, op); }
};

// Tensors that share memory, by in-place operations, are one: root[] names the one that stands for all.
std::vector<TensorId> share_in_place(std::span<const std::unique_ptr<Op>> ops, std::span<const Tensor> tensors,
                                     std::vector<Use>& uses) {
  std::vector<TensorId> root(tensors.size());
  std::iota(root.begin(), root.end(), 0);
  for (int index = 0; index < static_cast<int>(ops.size()); ++index) {
    const Op& op = *ops[static_cast<std::size_t>(index)];
    if (op.in_place_read == kNoTensor) continue;
    const auto read = static_cast<std::size_t>(root[static_cast<std::size_t>(op.in_place_read)]);
    const auto write = static_cast<std::size_t>(op.in_place_write);
    if (uses[read].last != index || tensors[read].sample_bytes() != tensors[write].sample_bytes()) continue;
    root[write] = static_cast<TensorId>(read);
    uses[read].last = uses[write].last;
  }
  return root;
}

}  // namespace

std::string LoopOp::shape_name(int count) const { return fmt::format("n{}", count); }

void SumOp::meet(std::span<Context> threads) {
  std::vector<double> row(row_size());
  sum_up(threads, row);
  take(threads.front(), row);
}

TensorId Program::add_tensor(const nn::Shape& shape, DType dtype) {
  tensors_.push_back({shape, dtype});
  return static_cast<TensorId>(tensors_.size()) - 1;
}

std::size_t Program::add_coefficients(std::size_t bytes) {
  const std::size_t offset = coefficient_bytes_;
  coefficient_bytes_ += aligned(bytes);
  return offset;
}

Op& Program::add(std::unique_ptr<Op> op) {
  ops_.push_back(std::move(op));
  return *ops_.back();
}

void Program::cut_segments(int max_samples) {
  Segment segment;
  std::size_t tensor_bytes = 1, weight_bytes = 0;
  for (int index = 0; index < size(); ++index) {
    const Op& op = *ops_[static_cast<std::size_t>(index)];
    for (const auto* ids : {&op.reads, &op.writes}) {
      for (const TensorId id : *ids) tensor_bytes = std::max(tensor_bytes, tensor(id).sample_bytes());
    }
    weight_bytes = std::max(weight_bytes, op.weight_bytes());
    segment.gradients.insert(segment.gradients.end(), op.gradients.begin(), op.gradients.end());
    if (!op.meets() && index + 1 < size()) continue;
    segment.end_op = index + 1;
    segment.meets = op.meets();
    if (auto* const sums = dynamic_cast<SumOp*>(ops_[static_cast<std::size_t>(index)].get())) {
      segment.meeting = sums->synchronized() ? sums : nullptr;
    }
    const std::size_t samples = std::max(kChunkBytes, weight_bytes) / tensor_bytes;
    segment.max_chunk = static_cast<int>(std::clamp<std::size_t>(samples, 1, static_cast<std::size_t>(max_samples)));
    segments_.push_back(segment);
    segment = Segment{};
    segment.first_op = index + 1;
    tensor_bytes = 1, weight_bytes = 0;
  }
}

std::vector<Part> Program::other_parts(std::int64_t size) const {
  std::vector<Part> gradients, others;
  for (const Segment& segment : segments_) {
    gradients.insert(gradients.end(), segment.gradients.begin(), segment.gradients.end());
  }
  std::ranges::sort(gradients, {}, &Part::first);
  std::int64_t next = 0;
  for (const Part& part : gradients) {
    DTRAIN_CHECK(part.first >= next, "two operations write the same gradient");
    if (part.first > next) others.push_back({next, part.first - next});
    next = part.first + part.size;
  }
  if (next < size) others.push_back({next, size - next});
  return others;
}

void Program::plan(int max_samples) {
  cut_segments(max_samples);
  std::vector<Use> uses(tensors_.size());
  for (int index = 0; index < size(); ++index) {
    for (const TensorId id : op(index).reads) uses[static_cast<std::size_t>(id)].at(index);
    for (const TensorId id : op(index).writes) uses[static_cast<std::size_t>(id)].at(index);
  }
  const std::vector<TensorId> root = share_in_place(ops_, tensors_, uses);

  const auto segment_of = [&](int index) {
    const auto after = std::ranges::upper_bound(segments_, index, {}, &Segment::first_op);
    return static_cast<int>(after - segments_.begin()) - 1;
  };
  std::vector<Lifetime> full(tensors_.size()), local(tensors_.size());
  for (std::size_t id = 0; id < tensors_.size(); ++id) {
    if (root[id] != static_cast<TensorId>(id) || uses[id].last < 0) continue;
    const int first = segment_of(uses[id].first), last = segment_of(uses[id].last);
    tensors_[id].local = first == last;
    if (tensors_[id].local) {
      const auto chunk = static_cast<std::size_t>(segments_[static_cast<std::size_t>(first)].max_chunk);
      local[id] = {chunk * tensors_[id].sample_bytes(), uses[id].first, uses[id].last};
    } else {
      full[id] = {static_cast<std::size_t>(max_samples) * tensors_[id].sample_bytes(), first, last};
    }
  }
  const Places full_places = plan_places(full, kAlignment), local_places = plan_places(local, kAlignment);
  arena_bytes_ = full_places.bytes;
  local_bytes_ = local_places.bytes;
  for (std::size_t id = 0; id < tensors_.size(); ++id) {
    auto& own = tensors_[static_cast<std::size_t>(root[id])];
    own.offset = (own.local ? local_places : full_places).offsets[static_cast<std::size_t>(root[id])];
    tensors_[id].local = own.local;
    tensors_[id].offset = own.offset;
  }
}

void Program::prepare(int n, int workers) {
  if (n == 0 || std::ranges::find(prepared_, n) != prepared_.end()) return;
  for (const Segment& segment : segments_) {
    const Chunks chunks{n, segment.max_chunk};
    for (int index = segment.first_op; index < segment.end_op; ++index) {
      op(index).prepare(chunks.size(0), workers);
      op(index).prepare(chunks.size(chunks.number() - 1), workers);
    }
  }
  prepared_.push_back(n);
  place_workspaces();
}

// Anew after each preparation: primitives say what they need only when they are made. Nothing lives here between
// segments.
void Program::place_workspaces() {
  for (const Segment& segment : segments_) {
    std::size_t bytes = 0;
    for (int index = segment.first_op; index < segment.end_op; ++index) {
      op(index).workspace_offset_ = bytes;
      bytes += aligned(op(index).workspace_bytes());
    }
    workspace_bytes_ = std::max(workspace_bytes_, bytes);
  }
}

std::size_t Program::scratchpad_bytes() const {
  std::size_t bytes = 0;
  for (const auto& op : ops_) bytes = std::max(bytes, op->scratchpad_bytes());
  return bytes;
}

}  // namespace dtrain::backend::cpu
