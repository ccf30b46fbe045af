// Gradients: from the loss to the weights.
#include "lowering.hpp"

namespace dtrain::backend::cuda {

void Lowering::loss(TensorId gradient, const nn::SoftmaxLoss& of, float* (*target)(const Binding&, const nn::Graph&)) {
  const TensorId x = value(graph_.nodes.back().inputs[0]);
  const nn::Shape counted{SoftmaxLoss::kCounts, 1, 1};
  const Classes classes{graph_.classes()};
  const TensorId counts =
      program_.add_tensor([=](int n) { return static_cast<std::size_t>(n * counted.size()) * sizeof(float); });
  const auto of_parts = [&](std::size_t bytes) {
    return program_.add_tensor(
        [=](int n) { return static_cast<std::size_t>(std::int64_t{n} * classes.parts()) * bytes; });
  };
  const TensorId parts = of_parts(sizeof(SoftmaxPart)), terms = of_parts(sizeof(LossTerm));
  const TensorId samples =
      program_.add_tensor([](int n) { return static_cast<std::size_t>(n) * sizeof(LossOfSample); });
  const Sums sums = new_sums(counted, 1);
  add(size() - 1, ".loss", {x, gradient, counts, parts, terms, samples, sums.parts, sums.folded},
      [=, &m = model_]<typename T>(T, const Binding& b, auto& emit) {
        auto* const per_sample = b.tensor<float>(counts);
        auto* const in_parts = b.tensor<SoftmaxPart>(parts);
        auto* const in_terms = b.tensor<LossTerm>(terms);
        auto* const found = b.tensor<LossOfSample>(samples);
        const Targets targets{b.labels, b.partners, b.shares};
        const LossRule rule = rule_of(of, classes.number, b.class_weights);
        const auto count = [&]<typename L>(const L* logits) {
          emit(SoftmaxParts<L>{logits, targets, in_parts, b.n, classes});
          emit(LossParts<L>{logits, targets, in_parts, in_terms, b.n, classes, rule});
          emit(SoftmaxLoss{in_parts, in_terms, targets, found, per_sample, b.n, classes, m.top_k});
        };
        if (gradient == kNoTensor) {
          count(b.logits);  // the mean of the views
        } else {
          count(b.tensor<T>(x));
          emit(SoftmaxGradient<T>{b.tensor<T>(x), targets, found, b.tensor<T>(gradient), b.n, classes, rule,
                                  b.loss_scale});
        }
        const RowParts cut = cut_rows(b.n, packs_of(counted.c, Pack<float>::size));
        emit(folded(b, sums, ColumnSums<float>{per_sample, b.tensor<float>(sums.parts), cut, counted.c},
                    StoreSums{b.tensor<float>(sums.folded), target(b, m.graph), cut.folded_parts, sums.width}));
      });
}

void Lowering::classifier_loss() {
  const int logits = graph_.nodes.back().inputs[0];
  const TensorId gradient = gradient_tensor(logits);
  loss(gradient, nn::loss_of(graph_),
       [](const Binding& b, const nn::Graph& g) { return b.contribution + g.parameter_count + g.statistic_count; });
  pass_on(logits, gradient);
}

void Lowering::backward() {
  nn::detection_of(graph_) ? detection_loss() : classifier_loss();
  finish_parts(size() - 1);
  for (int index = size() - 2; index > 0; --index) {
    backward_at(index);
    finish_parts(index);
  }
}

void Lowering::backward_at(int index) {
  if (gradients_[at(index)].empty()) return;
  if (fusion_.norm_of[at(index)] >= 0) {
    backward_norm(fusion_.norm_of[at(index)], index);
  } else if (wants_gradient(index)) {
    backward_node(index);
  }
}

void Lowering::finish_parts(int node) {
  const PackedWeights table{nullptr, static_cast<std::int32_t>(model_.weights.size()), model_.copied};
  for (int number = 0; number < static_cast<int>(parts_.size()); ++number) {
    const ContributionPart& part = parts_[at(number)];
    if (part.node != node) continue;
    const bool scaled = model_.dtype == DType::float16 && part.floats.first < graph_.parameter_count;
    add(node, ".final", {},
        [=, floats = part.floats, copies = part.copies]<typename T>(T, const Binding& b, auto& emit) {
          PackedWeights weights = table;
          weights.weights = b.weight_table;
          if (copies.size > 0 && b.unpacks_gradients) {
            emit(UnpackGradients<T>{weights, static_cast<const T*>(b.weight_gradients), b.contribution, copies.first,
                                    copies.size});
          }
          if (scaled) emit(Unscale{b.contribution + floats.first, floats.size, b.loss_scale});
          emit(EventMarker{number});
        });
  }
}

// The parts of a value's gradient, added up until at most `parts` are left.
Lowering::Gradients Lowering::gradient_parts(int index, std::size_t parts) {
  Gradients& all = gradients_[at(index)];
  while (all.size() > parts) {
    const TensorId sum = add_up(index, ".gradient_sum", all[0], all[1], shapes_[at(index)]);
    all.erase(all.begin());
    all[0] = sum;
  }
  return all;
}

void Lowering::backward_norm(int norm, int output) {
  const NormGroup& group = fusion_.norms[at(norm)];
  const int source = node(norm).inputs[0];
  const Gradients parts = gradient_parts(output, 2);
  const Incoming incoming{parts[0], parts.size() > 1 ? parts[1] : kNoTensor, passed_[at(norm)], group.relu};

  // The residual's gradient, where it is not the incoming one itself. Who needs it anyway writes it first and reads it
  // in place of all that it was made of. So is the gradient behind a GELU: its slope costs more than that pass.
  const bool pass_residual = group.residual >= 0 && wants_gradient(group.residual);
  const bool keeps = group.gelu || (pass_residual && (group.relu || incoming.dy2 != kNoTensor));
  const bool learns = node(norm).learns, passes_on = wants_gradient(source);
  const NormTotals totals{.norm = norm,
                          .shape = shapes_[at(output)],
                          .x = largest_[at(norm)] == kNoTensor ? value(source) : largest_[at(norm)],
                          .incoming = incoming,
                          .kept = keeps ? gradient_tensor(output) : kNoTensor,
                          .gelu = group.gelu,
                          .sums = learns || keeps ? new_sums(shapes_[at(output)], 2) : Sums{}};
  const Incoming left = keeps ? Incoming{.dy = totals.kept} : incoming;
  if (pass_residual) pass_on(group.residual, left.dy);
  if (learns && passes_on && group.pooling < 0) return norm_backward(totals, left);
  if (learns || keeps) norm_gradient_sums(totals);
  if (!learns && keeps) fixed_norm(norm);  // without the means of the gradient
  if (!passes_on) return;
  if (group.pooling >= 0) return norm_pooling_gradient(norm, left);
  norm_gradient(totals, left);
}

template <typename T, bool Gelu>
NormGradientTotals<T, Gelu> Lowering::NormTotals::bound(const Model& m, const Binding& b) const {
  const bool held_gamma = nn::is_held(m.node(norm), 0), held_beta = nn::is_held(m.node(norm), 1);
  const RowParts cut = cut_rows(rows_of(shape, b.n), packs_of(shape.c, Pack<T>::size));
  const NormGradientFinish finish{b.tensor<float>(sums.folded),
                                  cut,
                                  rows_of(m.node(norm).output, b.n),
                                  m.norm_coefficients(b, norm),
                                  held_gamma ? nullptr : b.contribution + m.parameter(norm, 0),
                                  held_beta ? nullptr : b.contribution + m.parameter(norm, 1)};
  return folded(b, sums,
                NormGradientSums<T, Gelu>{incoming.at<T, Gelu>(b), b.tensor<T>(x), b.tensor<T>(kept),
                                          b.tensor<float>(sums.parts), cut, m.norm_coefficients(b, norm)},
                finish);
}

void Lowering::norm_gradient_sums(const NormTotals& totals) {
  add(totals.norm, ".gradient_sums", totals.touches(), {totals.sums.parts},
      [totals, &m = model_]<typename T>(T, const Binding& b, auto& emit) {
        with_bool(totals.gelu, [&](auto gelu) { emit(totals.bound<T, gelu()>(m, b)); });
      });
}

TensorId Lowering::take_gradient(int index) {
  Gradients& all = gradients_[at(index)];
  if (all.empty()) return kNoTensor;
  const TensorId last = all.back();
  all.pop_back();
  return last;
}

template <typename T>
NormGradient<T> Lowering::NormDx::bound(const Model& m, const Binding& b) const {
  return {incoming.at<T>(b),
          b.tensor<T>(x),
          b.tensor<T>(addend),
          b.tensor<T>(dx),
          m.norm_coefficients(b, norm),
          few_rows(rows_of(shape, b.n))};
}

Lowering::NormDx Lowering::dx_of(const NormTotals& totals, const Incoming& incoming) {
  const int source = node(totals.norm).inputs[0];
  const NormDx dx{totals.norm, totals.shape, totals.x, incoming, take_gradient(source), new_tensor(totals.shape)};
  pass_on(source, dx.dx);
  return dx;
}

void Lowering::norm_backward(const NormTotals& totals, const Incoming& incoming) {
  const NormDx dx = dx_of(totals, incoming);
  std::vector<TensorId> touches = totals.touches();
  touches.insert(touches.end(), {dx.addend, dx.dx});
  add(totals.norm, ".gradient", touches, {totals.sums.parts},
      [=, &m = model_]<typename T>(T, const Binding& b, auto& emit) {
        with_bool(totals.gelu, [&](auto gelu) {
          emit(NormBackward<T, gelu()>{totals.bound<T, gelu()>(m, b), dx.bound<T>(m, b)});
        });
      });
}

void Lowering::norm_gradient(const NormTotals& totals, const Incoming& incoming) {
  const NormDx dx = dx_of(totals, incoming);
  add(totals.norm, ".gradient", {dx.x, incoming.dy, incoming.dy2, incoming.passed, dx.addend, dx.dx},
      [=, &m = model_]<typename T>(T, const Binding& b, auto& emit) { emit(dx.bound<T>(m, b)); });
}

void Lowering::norm_pooling_gradient(int norm, const Incoming& incoming) {
  const int source = node(norm).inputs[0], pooling = fusion_.norms[at(norm)].pooling;
  const nn::Shape shape = node(norm).output, pooled = node(pooling).output;
  const TensorId x = value(source), dx = new_tensor(shape), places = places_[at(pooling)];
  const TensorId addend = take_gradient(source);
  add(norm, ".gradient", {x, incoming.dy, incoming.dy2, places, addend, dx},
      [=, layer = *as<nn::Pooling>(node(pooling)), &m = model_]<typename T>(T, const Binding& b, auto& emit) {
        const MaxPoolIncoming<T, std::uint8_t> behind{b.tensor<T>(incoming.dy), b.tensor<T>(incoming.dy2),
                                                      b.tensor<std::uint8_t>(places),
                                                      pool_shape(layer, shape, pooled, b.n)};
        emit(NormMaxPoolGradient<T>{behind, b.tensor<T>(x), b.tensor<T>(addend), b.tensor<T>(dx),
                                    m.norm_coefficients(b, norm)});
      });
  pass_on(source, dx);
}

void Lowering::backward_node(int index) {
  const nn::Node& n = node(index);
  const TensorId dy = gradient_parts(index, 1)[0];
  if (index == model_.first_layer.activation) return whitening_gradient(dy);
  if (backward_detection_layer(index, dy)) return;
  if (model_.has_weight(index)) return backward_product(index, dy);
  if (as<nn::Add>(n)) {
    for (const int input : n.inputs) {
      if (wants_gradient(input)) pass_on(input, dy);
    }
    return;
  }
  if (as<nn::Concat>(n)) return backward_concat(index, dy);
  if (as<nn::Multiply>(n)) return backward_multiply(index, dy);
  if (as<nn::LayerNorm>(n)) return backward_layer_norm(index, dy);
  if (as<nn::LayerScale>(n)) return backward_layer_scale(index, dy);
  if (as<nn::ClassToken>(n)) return backward_class_token(index, dy);
  if (as<nn::Position>(n)) return backward_position(index, dy);
  if (as<nn::FirstToken>(n)) return backward_first_token(index, dy);
  if (const auto* attention = as<nn::Attention>(n)) return backward_attention(index, *attention, dy);
  const int source = n.inputs[0];
  const nn::Shape shape = shapes_[at(source)];
  if (as<nn::Flatten>(n) && is_flat(shape)) return pass_on(source, dy);
  const TensorId dx = gradient_tensor(source);
  if (const auto* activation = as<nn::Activation>(n)) {
    const bool by_input = slope_is_by_input(*activation);
    const TensorId by = value(by_input ? source : index);
    add(index, ".gradient", {dy, by, dx},
        [=, &m = model_, kind = activation->kind, biased = by_input ? biased_input(index) : -1]<typename T>(
            T, const Binding& b, auto& emit) {
          emit(ActivateGradient<T>{b.tensor<T>(dy), b.tensor<T>(by), late_bias(m, b, biased), b.tensor<T>(dx),
                                   b.n * shape.size(), kind});
        });
  } else if (const auto* pooling = as<nn::Pooling>(n)) {
    backward_pooling(index, *pooling, dy, dx);
  } else if (const auto* scaled = as<nn::Scale>(n)) {
    scale(index, ".gradient", *scaled, dy, dx);
  } else if (const auto* dropout = as<nn::Dropout>(n)) {
    drop(index, ".gradient", *dropout, dy, dx);
  } else {
    DTRAIN_CHECK(as<nn::Flatten>(n), "a layer whose gradient the cuda backend does not know");
    reorder(index, ".gradient", dy, dx, shape, false);
  }
  pass_on(source, dx);
}

void Lowering::backward_concat(int index, TensorId dy) {
  ChannelRange source{node(index).output.c, 0};
  for (const int input : node(index).inputs) {
    const nn::Shape& shape = node(input).output;
    if (wants_gradient(input)) {
      const TensorId dx = gradient_tensor(input);
      copy_channels(index, ".gradient", dy, dx, shape, source, {shape.c, 0});
      pass_on(input, dx);
    }
    source.first += shape.c;
  }
}

void Lowering::backward_multiply(int index, TensorId dy) {
  const int source = node(index).inputs[0], factors = node(index).inputs[1];
  const nn::Shape shape = node(index).output;
  if (wants_gradient(factors)) {
    const TensorId x = value(source), dx = gradient_tensor(factors);
    add(index, ".factor_gradient", {x, dy, dx}, [=]<typename T>(T, const Binding& b, auto& emit) {
      emit(FactorGradient<T>{b.tensor<T>(x), b.tensor<T>(dy), b.tensor<T>(dx), b.n, shape.c, shape.h * shape.w});
    });
    pass_on(factors, dx);
  }
  if (!wants_gradient(source)) return;
  const TensorId dx = gradient_tensor(source);
  multiply(index, ".gradient", dy, dx);
  pass_on(source, dx);
}

void Lowering::backward_pooling(int index, const nn::Pooling& layer, TensorId dy, TensorId dx) {
  const nn::Shape in = shapes_[at(node(index).inputs[0])], out = node(index).output;
  if (layer.kind != nn::PoolingKind::max) {
    add(index, ".gradient", {dy, dx}, [=]<typename T>(T, const Binding& b, auto& emit) {
      emit(AveragePoolGradient<T>{b.tensor<T>(dy), b.tensor<T>(dx), pool_shape(layer, in, out, b.n)});
    });
    return;
  }
  with_place(pool_shape(layer, in, out, 1), [&]<typename Place>(Place) {
    add(index, ".gradient", {dy, dx, places_[at(index)]},
        [=, places = places_[at(index)]]<typename T>(T, const Binding& b, auto& emit) {
          const PoolShape shape = pool_shape(layer, in, out, b.n);
          emit(MaxPoolGradient<T, Place>{{b.tensor<T>(dy), nullptr, b.tensor<Place>(places), shape}, b.tensor<T>(dx)});
        });
  });
}

void Lowering::backward_product(int index, TensorId dy) {
  const int source = node(index).inputs[0];
  if (model_.has_bias(index) && !nn::is_held(node(index), 1)) bias_gradient(index, dy);
  if (!nn::is_held(node(index), 0)) weight_gradient(index, dy);
  if (!wants_gradient(source)) return;
  const nn::Shape shape = shapes_[at(source)];
  TensorId dx = new_tensor(shape);
  add(index, ".backward_data", {dy, dx}, [=, &m = model_]<typename T>(T, const Binding& b, auto& emit) {
    Convolution work = m.convolution(b, index, Direction::backward_data);
    work.a = b.tensor<T>(dy);
    work.b = m.weight_in<T>(b.weights, index);
    work.result = b.tensor<T>(dx);
    emit(work);
  });
  if (as<nn::Dense>(node(index)) && !is_flat(shape)) {
    dx = reorder(index, ".unflatten", dx, new_tensor(shape), shape, false);
  }
  pass_on(source, dx);
}

void Lowering::weight_gradient(int index, TensorId dy) {
  const int norm = norm_before(index);
  weight_gradient_of(index, product_input(index), dy, {norm, normed_from(norm)});
}

// `x`: what the convolution reads, `dy` what reaches its output.
void Lowering::weight_gradient_of(int index, TensorId x, TensorId dy, const NormBefore& before) {
  const TensorId sums = program_.add_tensor([&m = model_, index](int n) {
    const ConvolutionShape shape = m.convolution_shape(index, n);
    return static_cast<std::size_t>(cut_weight_rows(shape).parts * shape.weights()) * sizeof(float);
  });
  const auto [norm, normed] = before;
  add(index, ".backward_weights", {x, normed, dy, sums},
      [=, norm = norm, normed = normed, &m = model_]<typename T>(T, const Binding& b, auto& emit) {
        Convolution work = m.convolution(b, index, Direction::backward_weights);
        work.normed = normed_input<T>(m, b, norm, normed, x);
        work.a = b.tensor<T>(x);
        work.b = b.tensor<T>(dy);
        work.result = m.weight_in<T>(b.weight_gradients, index);
        work.sums = b.tensor<float>(sums);
        emit(work);
      });
}

void Lowering::whitening_gradient(TensorId dy) {
  const int index = model_.first_layer.convolution;
  const TensorId x = value(node(index).inputs[0]);
  const nn::Shape shape = node(index).output;
  const Sums sums = new_sums(shape, 1);
  const std::int64_t bias = model_.parameter(index, 1);
  add(index, ".backward_bias", {x, dy, sums.parts, sums.folded},
      [=, &m = model_]<typename T>(T, const Binding& b, auto& emit) {
        const RowParts cut = cut_rows(rows_of(shape, b.n), packs_of(shape.c, Pack<T>::size));
        const Whitening<T> whitening = m.whitening<T>(b, b.tensor<T>(x));
        emit(folded(b, sums, WhiteningSums<T>{whitening, b.tensor<T>(dy), b.tensor<float>(sums.parts), cut},
                    StoreSums{b.tensor<float>(sums.folded), b.contribution + bias, cut.folded_parts, sums.width}));
      });
}

void Lowering::bias_gradient(int index, TensorId dy) {
  const nn::Shape shape = node(index).output;
  const Sums sums = new_sums(shape, 1);
  const std::int64_t bias = model_.parameter(index, 1);
  add(index, ".backward_bias", {dy, sums.parts, sums.folded}, [=]<typename T>(T, const Binding& b, auto& emit) {
    const RowParts cut = cut_rows(rows_of(shape, b.n), packs_of(shape.c, Pack<T>::size));
    emit(folded(b, sums, ColumnSums<T>{b.tensor<T>(dy), b.tensor<float>(sums.parts), cut, shape.c},
                StoreSums{b.tensor<float>(sums.folded), b.contribution + bias, cut.folded_parts, sums.width}));
  });
}

}  // namespace dtrain::backend::cuda
