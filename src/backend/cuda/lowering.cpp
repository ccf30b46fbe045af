#include "lowering.hpp"

#include <limits>

namespace dtrain::backend::cuda {

Lowering::Lowering(const Model& model)
    : model_(model),
      graph_(model.graph),
      fusion_(fuse(graph_, {.gelu = true, .max_pooling = true})),
      parts_(parts_of(model)),
      values_(graph_.nodes.size(), kNoTensor),
      places_(graph_.nodes.size(), kNoTensor),
      passed_(graph_.nodes.size(), kNoTensor),
      largest_(graph_.nodes.size(), kNoTensor),
      kept_(graph_.nodes.size(), kNoTensor),
      shapes_(graph_.nodes.size()),
      gradients_(graph_.nodes.size()) {}

Program Lowering::evaluation() {
  training_ = false;
  running_coefficients();
  forward();
  if (nn::detection_of(graph_)) {
    detection_results();
    return std::move(program_);
  }
  const TensorId x = value(graph_.nodes.back().inputs[0]);
  const int classes = graph_.classes();
  add(size() - 1, ".logits", {x}, [=]<typename T>(T, const Binding& b, auto& emit) {
    emit(AddView<T>{b.samples, b.tensor<T>(x), b.logits, std::int64_t{b.n} * classes});
  });
  loss(kNoTensor, {}, [](const Binding& b, const nn::Graph&) { return b.metrics; });
  return std::move(program_);
}

Program Lowering::training() {
  const std::int64_t size = ContributionLayout(graph_).size();
  add(0, ".clear", {}, [=]<typename T>(T, const Binding& b, auto& emit) {
    if (b.unpacks_gradients) emit(Fill{b.contribution, size, 0.0f});
  });
  forward();
  backward();
  return std::move(program_);
}

TensorId Lowering::new_tensor(const nn::Shape& shape) {
  return program_.add_tensor([count = shape.size(), bytes = model_.value_bytes()](int n) {
    return static_cast<std::size_t>(n * count) * bytes;
  });
}

TensorId Lowering::new_value(int index, const nn::Shape& shape) {
  shapes_[at(index)] = shape;
  return values_[at(index)] = new_tensor(shape);
}

TensorId Lowering::new_bits(const nn::Shape& shape) {
  return program_.add_tensor(
      [shape, packs = packs_in_row(shape)](int n) { return static_cast<std::size_t>(rows_of(shape, n) * packs); });
}

std::int64_t Lowering::packs_in_row(const nn::Shape& shape) const {
  return packs_of(shape.c, static_cast<std::int64_t>(sizeof(Pack<float>) / model_.value_bytes()));
}

void Lowering::alias(int index, int of) {
  shapes_[at(index)] = shapes_[at(of)];
  values_[at(index)] = value(of);
}

Sums Lowering::new_sums(const nn::Shape& shape, int kinds, std::int64_t packs) {
  Sums sums;
  sums.width = kinds * shape.c;
  sums.parts = program_.add_tensor([shape, width = sums.width, packs](int n) {
    return static_cast<std::size_t>(cut_rows(rows_of(shape, n), packs).parts * width) * sizeof(float);
  });
  sums.folded = program_.add_tensor([shape, width = sums.width, packs](int n) {
    return static_cast<std::size_t>(cut_rows(rows_of(shape, n), packs).folded_parts * width) * sizeof(float);
  });
  return sums;
}

static std::int64_t most_pooled_samples(const nn::Shape& in) {
  constexpr std::int64_t kMostThreads = std::numeric_limits<std::uint32_t>::max();
  const auto threads = static_cast<std::int64_t>(rows_of(in, 1) * packs_of(in.c, Pack<float>::size));
  return kMostThreads / threads;
}

std::int64_t most_pooled_samples(const nn::Graph& graph) {
  std::int64_t most = std::numeric_limits<std::int32_t>::max();
  for (const nn::Node& node : graph.nodes) {
    if (!std::holds_alternative<nn::Pooling>(node.layer)) continue;
    most = std::min(most, most_pooled_samples(graph.nodes[static_cast<std::size_t>(node.inputs[0])].output));
  }
  return most;
}

PoolShape pool_shape(const nn::Pooling& l, const nn::Shape& in, const nn::Shape& out, int n) {
  DTRAIN_CHECK(n <= most_pooled_samples(in), "a pooling of 2^32 threads");
  if (l.global) return {n, in.c, {in.h, 1, in.h, 1, 0}, {in.w, 1, in.w, 1, 0}, l.count_include_pad};
  return {n,
          in.c,
          {in.h, out.h, l.kernel_h, l.stride_h, l.pad_h},
          {in.w, out.w, l.kernel_w, l.stride_w, l.pad_w},
          l.count_include_pad};
}

Program lower_training(const Model& model) { return Lowering(model).training(); }
Program lower_evaluation(const Model& model) { return Lowering(model).evaluation(); }

}  // namespace dtrain::backend::cuda
