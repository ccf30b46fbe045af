// Layer norm, layer scale, tokens and attention, both ways.
#include <dtrain/base/error.hpp>

#include "../lowering.hpp"

namespace dtrain::backend::cuda {
namespace {

AttentionShape attention_shape(const nn::Attention& layer, const nn::Shape& out, int n) {
  return {n, out.h * out.w, layer.heads, out.c / layer.heads};
}

}  // namespace

TensorId Lowering::new_floats(std::int64_t of_sample) {
  return program_.add_tensor([=](int n) { return static_cast<std::size_t>(n * of_sample) * sizeof(float); });
}

void Lowering::forward_token_layer(int index) {
  const nn::Node& n = node(index);
  const TensorId x = value(n.inputs[0]);
  const nn::Shape in = shapes_[at(n.inputs[0])];
  if (const auto* norm = as<nn::LayerNorm>(n)) {
    layer_norm(index, *norm);
  } else if (as<nn::LayerScale>(n)) {
    scale_channels(index, ".forward", x, new_value(index, in));
  } else if (as<nn::ClassToken>(n)) {
    const TensorId y = new_value(index, n.output);
    add(index, ".forward", {x, y},
        [=, token = model_.parameter(index, 0)]<typename T>(T, const Binding& b, auto& emit) {
          emit(PrependToken<T>{b.tensor<T>(x), b.parameters + token, b.tensor<T>(y), b.n, in.size(), in.c});
        });
  } else if (as<nn::Position>(n)) {
    const TensorId y = new_value(index, in);
    add(index, ".forward", {x, y},
        [=, position = model_.parameter(index, 0)]<typename T>(T, const Binding& b, auto& emit) {
          emit(AddPosition<T>{b.tensor<T>(x), b.parameters + position, b.tensor<T>(y), b.n, in.size()});
        });
  } else if (as<nn::FirstToken>(n)) {
    copy_tokens(index, ".forward", x, new_value(index, n.output), in, n.output, false);
  } else if (const auto* attention = as<nn::Attention>(n)) {
    attend(index, *attention);
  } else {
    DTRAIN_CHECK(false, "a layer the cuda backend does not know");
  }
}

void Lowering::layer_norm(int index, const nn::LayerNorm& layer) {
  const int source = node(index).inputs[0];
  const nn::Shape shape = shapes_[at(source)];
  const TensorId x = value(source), y = new_value(index, shape);
  const TensorId moments = kept_[at(index)] = new_floats(2 * rows_of(shape, 1));
  add(index, ".forward", {x, y, moments},
      [=, epsilon = layer.epsilon, gamma = model_.parameter(index, 0), beta = model_.parameter(index, 1)]<typename T>(
          T, const Binding& b, auto& emit) {
        const RowPairs pairs{b.tensor<float>(moments)};
        const std::int64_t rows = rows_of(shape, b.n);
        emit(LayerNormMoments<T>{b.tensor<T>(x), pairs, rows, shape.c, epsilon});
        emit(LayerNormApply<T>{b.tensor<T>(x), pairs, b.parameters + gamma, b.parameters + beta, b.tensor<T>(y), rows,
                               shape.c});
      });
}

void Lowering::scale_channels(int index, const char* part, TensorId x, TensorId y) {
  const nn::Shape shape = node(index).output;
  add(index, part, {x, y}, [=, gain = model_.parameter(index, 0)]<typename T>(T, const Binding& b, auto& emit) {
    emit(ScaleChannels<T>{b.tensor<T>(x), b.parameters + gain, b.tensor<T>(y), rows_of(shape, b.n), shape.c});
  });
}

void Lowering::copy_tokens(int index, const char* part, TensorId x, TensorId y, const nn::Shape& from,
                           const nn::Shape& to, bool skips_first) {
  const std::int64_t first = skips_first ? from.c : 0;
  add(index, part, {x, y}, [=]<typename T>(T, const Binding& b, auto& emit) {
    emit(CopyTokens<T>{b.tensor<T>(x), b.tensor<T>(y), b.n, from.size(), to.size(), first});
  });
}

void Lowering::attend(int index, const nn::Attention& layer) {
  const nn::Shape out = node(index).output;
  const TensorId x = value(node(index).inputs[0]), y = new_value(index, out);
  const TensorId shares = kept_[at(index)] = new_floats(attention_shape(layer, out, 1).shares());
  add(index, ".forward", {x, y, shares}, [=]<typename T>(T, const Binding& b, auto& emit) {
    const AttentionShape shape = attention_shape(layer, out, b.n);
    emit(AttentionShares<T>{b.tensor<T>(x), b.tensor<float>(shares), shape});
    emit(Attend<T>{b.tensor<T>(x), b.tensor<float>(shares), b.tensor<T>(y), shape});
  });
}

void Lowering::backward_layer_norm(int index, TensorId dy) {
  const int source = node(index).inputs[0];
  const nn::Shape shape = shapes_[at(source)];
  const TensorId x = value(source), moments = kept_[at(index)];
  const std::int64_t gamma = model_.parameter(index, 0);
  if (!nn::is_held(node(index), 0)) {
    const Sums sums = new_sums(shape, 2);
    DTRAIN_CHECK(model_.parameter(index, 1) == gamma + shape.c, "beta follows gamma");
    add(index, ".gradient_sums", {x, dy, moments, sums.parts, sums.folded},
        [=]<typename T>(T, const Binding& b, auto& emit) {
          const RowParts cut = cut_rows(rows_of(shape, b.n), packs_of(shape.c, Pack<T>::size));
          auto *const parts = b.tensor<float>(sums.parts), *const few = b.tensor<float>(sums.folded);
          emit(LayerNormSums<T>{b.tensor<T>(x), b.tensor<T>(dy), {b.tensor<float>(moments)}, parts, cut, shape.c});
          emit(FoldParts{parts, few, cut, sums.width});
          emit(StoreSums{few, b.contribution + gamma, cut.folded_parts, sums.width});
        });
  }
  if (!wants_gradient(source)) return;
  const TensorId dx = gradient_tensor(source), means = new_floats(2 * rows_of(shape, 1));
  add(index, ".gradient", {x, dy, moments, means, dx}, [=]<typename T>(T, const Binding& b, auto& emit) {
    const RowPairs of_input{b.tensor<float>(moments)}, of_gradient{b.tensor<float>(means)};
    const std::int64_t rows = rows_of(shape, b.n);
    const float* const gains = b.parameters + gamma;
    emit(LayerNormGradientMeans<T>{b.tensor<T>(x), b.tensor<T>(dy), of_input, of_gradient, gains, rows, shape.c});
    emit(LayerNormGradient<T>{b.tensor<T>(x), b.tensor<T>(dy), of_input, of_gradient, gains, b.tensor<T>(dx), rows,
                              shape.c});
  });
  pass_on(source, dx);
}

void Lowering::backward_layer_scale(int index, TensorId dy) {
  const int source = node(index).inputs[0];
  const nn::Shape shape = node(index).output;
  if (!nn::is_held(node(index), 0)) {
    const TensorId x = value(source);
    const Sums sums = new_sums(shape, 1);
    add(index, ".gain_gradient", {x, dy, sums.parts, sums.folded},
        [=, gain = model_.parameter(index, 0)]<typename T>(T, const Binding& b, auto& emit) {
          const RowParts cut = cut_rows(rows_of(shape, b.n), packs_of(shape.c, Pack<T>::size));
          auto *const parts = b.tensor<float>(sums.parts), *const few = b.tensor<float>(sums.folded);
          emit(GainSums<T>{b.tensor<T>(x), b.tensor<T>(dy), parts, cut, shape.c});
          emit(FoldParts{parts, few, cut, sums.width});
          emit(StoreSums{few, b.contribution + gain, cut.folded_parts, sums.width});
        });
  }
  if (!wants_gradient(source)) return;
  const TensorId dx = gradient_tensor(source);
  scale_channels(index, ".gradient", dy, dx);
  pass_on(source, dx);
}

void Lowering::token_sums(int index, TensorId dy, std::int64_t size) {
  const std::int64_t sample = node(index).output.size(), to = model_.parameter(index, 0);
  add(index, ".token_gradient", {dy}, [=]<typename T>(T, const Binding& b, auto& emit) {
    emit(SampleSums<T>{b.tensor<T>(dy), b.contribution + to, b.n, sample, size});
  });
}

void Lowering::backward_class_token(int index, TensorId dy) {
  const int source = node(index).inputs[0];
  if (!nn::is_held(node(index), 0)) token_sums(index, dy, node(index).output.c);
  if (!wants_gradient(source)) return;
  const TensorId dx = gradient_tensor(source);
  copy_tokens(index, ".gradient", dy, dx, node(index).output, shapes_[at(source)], true);
  pass_on(source, dx);
}

void Lowering::backward_position(int index, TensorId dy) {
  const int source = node(index).inputs[0];
  if (!nn::is_held(node(index), 0)) token_sums(index, dy, node(index).output.size());
  if (wants_gradient(source)) pass_on(source, dy);
}

void Lowering::backward_first_token(int index, TensorId dy) {
  const int source = node(index).inputs[0];
  const TensorId dx = gradient_tensor(source);
  copy_tokens(index, ".gradient", dy, dx, node(index).output, shapes_[at(source)], false);
  pass_on(source, dx);
}

void Lowering::backward_attention(int index, const nn::Attention& layer, TensorId dy) {
  const int source = node(index).inputs[0];
  const nn::Shape out = node(index).output;
  const TensorId x = value(source), dx = gradient_tensor(source), shares = kept_[at(index)];
  const TensorId scores = new_floats(attention_shape(layer, out, 1).shares());
  add(index, ".gradient", {x, dy, shares, scores, dx}, [=]<typename T>(T, const Binding& b, auto& emit) {
    const AttentionShape shape = attention_shape(layer, out, b.n);
    auto *const in = b.tensor<T>(x), *const behind = b.tensor<T>(dy);
    auto *const share = b.tensor<float>(shares), *const score = b.tensor<float>(scores);
    emit(AttentionScoreGradient<T>{in, behind, share, score, shape});
    emit(AttentionGradient<T>{in, behind, share, score, b.tensor<T>(dx), shape});
  });
  pass_on(source, dx);
}

}  // namespace dtrain::backend::cuda
