// Values: from images to logits.
#include "lowering.hpp"

#include <dtrain/backend/dropout.hpp>
#include <dtrain/base/error.hpp>

namespace dtrain::backend::cuda {

void Lowering::forward() {
  for (int index = 0; index + 1 < size(); ++index) {
    if (as<nn::BatchNorm>(node(index)) && training_) {
      if (!node(index).learns) {
        fixed_norm(index);
      } else if (!is_one_operation(index)) {
        batch_statistics(index);
      }
    }
    const int norm = fusion_.norm_of[at(index)];
    if (norm >= 0) {
      forward_norm(norm, index);
    } else if (!fusion_.inside[at(index)]) {
      forward_node(index);
    }
  }
}

bool Lowering::is_one_operation(int norm) const {
  const NormGroup& group = fusion_.norms[at(norm)];
  return !group.added_by_norm && group.pooling < 0;
}

namespace {

template <typename T>
NormStatistics<T> statistics(const Model& m, const Binding& b, int norm, TensorId x, const Sums& sums) {
  const nn::Shape shape = m.node(norm).output;
  const std::int64_t first = m.graph.parameter_count;
  const RowParts cut = cut_rows(rows_of(shape, b.n), packs_of(shape.c, Pack<T>::size));
  return folded(b, sums, NormSums<T>{b.tensor<T>(x), b.tensor<float>(sums.parts), cut, shape.c},
                NormFromBatch<T>{b.tensor<float>(sums.folded), b.tensor<T>(x), cut, m.norm_parameters(b, norm),
                                 m.norm_coefficients(b, norm), b.contribution + first + m.statistic(norm, 0),
                                 b.contribution + first + m.statistic(norm, 1), static_cast<float>(b.n),
                                 b.statistics + m.statistic(norm, 1)});
}

}  // namespace

void Lowering::batch_statistics(int norm) {
  const TensorId x = value(node(norm).inputs[0]);
  const Sums sums = new_sums(node(norm).output, 2);
  add(norm, ".statistics", {x, sums.folded}, {sums.parts},
      [=, &m = model_]<typename T>(T, const Binding& b, auto& emit) { emit(statistics<T>(m, b, norm, x, sums)); });
}

void Lowering::fixed_norm(int norm) {
  const std::int64_t mean = model_.statistic(norm, 0), variance = model_.statistic(norm, 1);
  add(norm, ".fixed", {},
      [=, first = graph_.parameter_count, &m = model_]<typename T>(T, const Binding& b, auto& emit) {
        emit(NormFixed<T>{
            {b.statistics + mean, b.statistics + variance, m.norm_parameters(b, norm), m.norm_coefficients(b, norm)},
            b.contribution + first + mean,
            b.contribution + first + variance});
      });
}

void Lowering::running_coefficients() {
  for (int norm = 0; norm < size(); ++norm) {
    if (!as<nn::BatchNorm>(node(norm))) continue;
    const std::int64_t mean = model_.statistic(norm, 0), variance = model_.statistic(norm, 1);
    add(norm, ".running", {}, [=, &m = model_]<typename T>(T, const Binding& b, auto& emit) {
      emit(NormFromRunning{b.statistics + mean, b.statistics + variance, m.norm_parameters(b, norm),
                           m.norm_coefficients(b, norm)});
    });
  }
}

void Lowering::forward_norm(int norm, int output) {
  const NormGroup& group = fusion_.norms[at(norm)];
  const nn::Shape shape = node(norm).output;
  if (group.added_by_norm) {
    shapes_[at(output)] = shape;
    return;
  }
  if (group.pooling >= 0) return forward_norm_pooling(norm, output);
  const TensorId x = value(node(norm).inputs[0]);
  const int added = norm_to_add(group);
  const int read = added >= 0 ? node(added).inputs[0] : group.residual;
  const TensorId residual = read >= 0 ? value(read) : kNoTensor;
  const TensorId y = new_value(output, shape);
  const bool keeps = training_ && group.relu && residual != kNoTensor;
  const TensorId passed = passed_[at(norm)] = keeps ? new_bits(shape) : kNoTensor;
  const bool learns = training_ && node(norm).learns;
  const Sums sums = learns ? new_sums(shape, 2) : Sums{};
  add(norm, ".forward", {x, residual, y, passed, sums.folded}, {sums.parts},
      [=, &m = model_, relu = group.relu, gelu = group.gelu]<typename T>(T, const Binding& b, auto& emit) {
        const auto emit_norm = [&]<bool Gelu, bool NormsResidual>() {
          const NormApply<T, Gelu, NormsResidual> apply{
              b.tensor<T>(x),
              b.tensor<T>(residual),
              NormsResidual ? m.norm_coefficients(b, added) : NormCoefficients{},
              b.tensor<T>(y),
              b.tensor<std::uint8_t>(passed),
              m.norm_coefficients(b, norm),
              few_rows(rows_of(shape, b.n)),
              relu};
          if (learns) {
            emit(NormForward<T, Gelu, NormsResidual>{statistics<T>(m, b, norm, x, sums), apply});
          } else {
            emit(apply);
          }
        };
        if (gelu) {
          emit_norm.template operator()<true, false>();
        } else if (added >= 0) {
          emit_norm.template operator()<false, true>();
        } else {
          emit_norm.template operator()<false, false>();
        }
      });
}

void Lowering::forward_norm_pooling(int norm, int output) {
  const nn::Shape in = node(norm).output, out = node(output).output;
  const TensorId x = value(node(norm).inputs[0]), y = new_value(output, out);
  const TensorId largest = largest_[at(norm)] = training_ ? new_tensor(out) : kNoTensor;
  const TensorId places = new_places(output, sizeof(std::uint8_t));
  add(norm, ".forward", {x, largest, y, places},
      [=, &m = model_, pooling = *as<nn::Pooling>(node(output))]<typename T>(T, const Binding& b, auto& emit) {
        emit(NormMaxPool<T>{b.tensor<T>(x), b.tensor<T>(y), b.tensor<T>(largest), b.tensor<std::uint8_t>(places),
                            m.norm_coefficients(b, norm), pool_shape(pooling, in, out, b.n)});
      });
}

int Lowering::norm_to_add(const NormGroup& group) const {
  const int norm = group.residual >= 0 ? fusion_.norm_of[at(group.residual)] : -1;
  return norm >= 0 && fusion_.norms[at(norm)].added_by_norm ? norm : -1;
}

void Lowering::forward_node(int index) {
  const nn::Node& n = node(index);
  const FirstLayer& first = model_.first_layer;
  if (first.activation >= 0 && index == first.convolution) return;  // a part of the activation
  if (index == first.activation) return whiten_images(index);
  if (as<nn::Input>(n)) return load_images(index);
  if (forward_detection_layer(index)) return;
  const int source = n.inputs[0];
  if (model_.has_weight(index)) {
    forward_product(index);
  } else if (const auto* activation = as<nn::Activation>(n)) {
    const TensorId x = value(source), y = new_value(index, shapes_[at(source)]);
    add(index, ".forward", {x, y},
        [=, &m = model_, kind = activation->kind, size = n.output.size(), biased = biased_input(index)]<typename T>(
            T, const Binding& b, auto& emit) {
          emit(Activate<T>{b.tensor<T>(x), late_bias(m, b, biased), b.tensor<T>(y), b.n * size, kind});
        });
  } else if (const auto* pooling = as<nn::Pooling>(n)) {
    forward_pooling(index, *pooling);
  } else if (as<nn::Add>(n)) {
    const TensorId sum = add_up(index, ".forward", value(source), value(n.inputs[1]), shapes_[at(source)]);
    shapes_[at(index)] = shapes_[at(source)];
    values_[at(index)] = sum;
  } else if (as<nn::Concat>(n)) {
    concat(index);
  } else if (as<nn::Multiply>(n)) {
    multiply(index, ".forward", value(source), new_value(index, n.output));
  } else if (const auto* scaled = as<nn::Scale>(n)) {
    scale(index, ".forward", *scaled, value(source), new_value(index, shapes_[at(source)]));
  } else if (const auto* dropout = as<nn::Dropout>(n)) {
    if (!training_) {
      alias(index, source);
    } else {
      drop(index, ".forward", *dropout, value(source), new_value(index, shapes_[at(source)]));
    }
  } else if (as<nn::Flatten>(n)) {
    flatten(index, source);
  } else {
    forward_token_layer(index);
  }
}

void Lowering::load_images(int index) {
  const nn::Shape shape = node(index).output;
  const auto& blocks = model_.first_layer.blocks;
  const TensorId y = new_value(index, blocks ? nn::Shape{blocks->channels, blocks->h, blocks->w} : shape);
  add(index, ".load", {y}, [=]<typename T>(T, const Binding& b, auto& emit) {
    const Images images{b.samples, shape.c, shape.h, shape.w};
    const SampleNames names{b.labels, b.sample_ids, b.partners, b.shares};
    if (blocks && shape.c == 1) {
      emit(LoadBlocks<T, 1>{images, names, b.tensor<T>(y), *blocks, b.n});
    } else if (blocks) {
      emit(LoadBlocks<T, 3>{images, names, b.tensor<T>(y), *blocks, b.n});
    } else {
      emit(LoadSamples<T>{images, names, b.tensor<T>(y), b.n});
    }
  });
}

void Lowering::whiten_images(int index) {
  const TensorId x = value(node(model_.first_layer.convolution).inputs[0]), y = new_value(index, node(index).output);
  add(index, ".forward", {x, y}, [=, &m = model_]<typename T>(T, const Binding& b, auto& emit) {
    emit(WhitenImages<T>{m.whitening<T>(b, b.tensor<T>(x)), b.tensor<T>(y), b.n});
  });
}

TensorId Lowering::reorder(int of, const char* part, TensorId x, TensorId y, const nn::Shape& shape,
                           bool to_channels_first) {
  add(of, part, {x, y}, [=]<typename T>(T, const Binding& b, auto& emit) {
    emit(Reorder<T>{b.tensor<T>(x), b.tensor<T>(y), b.n, shape.c, shape.h * shape.w, to_channels_first});
  });
  return y;
}

void Lowering::flatten(int index, int source) {
  const nn::Shape& shape = shapes_[at(source)];
  if (is_flat(shape)) {
    alias(index, source);
  } else {
    reorder(index, ".forward", value(source), new_value(index, node(index).output), shape, true);
  }
}

// The input of a convolution; of a dense layer, flattened where it is not.
TensorId Lowering::product_input(int index) {
  const int source = node(index).inputs[0];
  const nn::Shape shape = shapes_[at(source)];
  if (!as<nn::Dense>(node(index)) || is_flat(shape)) return value(source);
  return reorder(index, ".flatten", value(source), new_tensor(shape), shape, true);
}

int Lowering::norm_before(int index) const {
  const int source = node(index).inputs[0], norm = fusion_.norm_of[at(source)];
  if (norm < 0 || !training_ || !as<nn::Convolution>(node(index))) return -1;
  const NormGroup& group = fusion_.norms[at(norm)];
  return group.relu && group.computed_twice ? norm : -1;
}

int Lowering::biased_input(int activation) const {
  const int source = node(activation).inputs[0];
  return fusion_.bias_is_later[at(source)] ? source : -1;
}

void Lowering::forward_product(int index) {
  const bool adds_bias = model_.has_bias(index) && !fusion_.bias_is_later[at(index)];
  const TensorId x = product_input(index), y = new_value(index, node(index).output);
  const int norm = norm_before(index);
  const TensorId normed = normed_from(norm);
  const nn::Shape shape = node(index).output;
  add(index, ".forward", {x, normed, y}, [=, &m = model_]<typename T>(T, const Binding& b, auto& emit) {
    Convolution work = m.convolution(b, index, Direction::forward);
    work.normed = normed_input<T>(m, b, norm, normed, x);
    work.a = b.tensor<T>(x);
    work.b = m.weight_in<T>(b.weights, index);
    work.result = b.tensor<T>(y);
    emit(work);
    if (adds_bias) emit(AddBias<T>{b.tensor<T>(y), late_bias(m, b, index), b.n * shape.size()});
  });
}

TensorId Lowering::new_places(int index, std::size_t bytes) {
  if (!training_) return kNoTensor;
  return places_[at(index)] = program_.add_tensor(
             [count = node(index).output.size(), bytes](int n) { return static_cast<std::size_t>(n * count) * bytes; });
}

void Lowering::forward_pooling(int index, const nn::Pooling& layer) {
  const nn::Shape in = shapes_[at(node(index).inputs[0])], out = node(index).output;
  const TensorId x = value(node(index).inputs[0]), y = new_value(index, out);
  if (layer.kind != nn::PoolingKind::max) {
    add(index, ".forward", {x, y}, [=]<typename T>(T, const Binding& b, auto& emit) {
      emit(AveragePool<T>{b.tensor<T>(x), b.tensor<T>(y), pool_shape(layer, in, out, b.n)});
    });
    return;
  }
  with_place(pool_shape(layer, in, out, 1), [&]<typename Place>(Place) {
    const TensorId places = new_places(index, sizeof(Place));
    add(index, ".forward", {x, y, places}, [=]<typename T>(T, const Binding& b, auto& emit) {
      emit(MaxPool<T, Place>{b.tensor<T>(x), b.tensor<T>(y), b.tensor<Place>(places), pool_shape(layer, in, out, b.n)});
    });
  });
}

TensorId Lowering::add_up(int of, const char* part, TensorId a, TensorId b, const nn::Shape& shape) {
  const TensorId y = new_tensor(shape);
  add(of, part, {a, b, y}, [=, size = shape.size()]<typename T>(T, const Binding& binding, auto& emit) {
    emit(Add<T>{binding.tensor<T>(a), binding.tensor<T>(b), binding.tensor<T>(y), binding.n * size});
  });
  return y;
}

void Lowering::concat(int index) {
  const nn::Shape& shape = node(index).output;
  const TensorId y = new_value(index, shape);
  ChannelRange target{shape.c, 0};
  for (const int input : node(index).inputs) {
    const nn::Shape& part = node(input).output;
    copy_channels(index, ".forward", value(input), y, part, {part.c, 0}, target);
    target.first += part.c;
  }
}

void Lowering::copy_channels(int index, const char* part, TensorId x, TensorId y, const nn::Shape& shape,
                             ChannelRange source, ChannelRange target) {
  add(index, part, {x, y}, [=]<typename T>(T, const Binding& b, auto& emit) {
    emit(CopyChannels<T>{b.tensor<T>(x), b.tensor<T>(y), rows_of(shape, b.n), shape.c, source, target});
  });
}

void Lowering::multiply(int index, const char* part, TensorId x, TensorId y) {
  const nn::Shape shape = node(index).output;
  const TensorId factors = value(node(index).inputs[1]);
  add(index, part, {x, factors, y}, [=]<typename T>(T, const Binding& b, auto& emit) {
    emit(MultiplyChannels<T>{b.tensor<T>(x), b.tensor<T>(factors), b.tensor<T>(y), b.n, shape.c, shape.h * shape.w});
  });
}

void Lowering::scale(int index, const char* part, const nn::Scale& layer, TensorId x, TensorId y) {
  const std::int64_t size = shapes_[at(index)].size();
  add(index, part, {x, y}, [=, factor = layer.factor]<typename T>(T, const Binding& b, auto& emit) {
    emit(Scale<T>{b.tensor<T>(x), b.tensor<T>(y), b.n * size, factor});
  });
}

void Lowering::drop(int index, const char* part, const nn::Dropout& layer, TensorId x, TensorId y) {
  const nn::Shape shape = shapes_[at(index)];
  add(index, part, {x, y}, [=, p = layer.p, whole = layer.whole_samples]<typename T>(T, const Binding& b, auto& emit) {
    emit(Drop<T>{b.tensor<T>(x), b.tensor<T>(y), b.key, b.sample_ids, b.n, shape.c, shape.h * shape.w, index,
                 static_cast<double>(p) * 0x1p32, dropout_scale(p), whole});
  });
}

}  // namespace dtrain::backend::cuda
