// Levels of feature pyramids, and what makes values larger, both ways.
#include "../lowering.hpp"

namespace dtrain::backend::cuda {
namespace {

nn::Levels levels_of(const nn::Graph& graph, const nn::Node& pyramid) {
  const nn::Shape& first = graph.nodes[at(pyramid.inputs[0])].output;
  return {static_cast<int>(pyramid.inputs.size()), first.h, first.w};
}

NearestPixel nearest(int from, int to) { return {from, to}; }

}  // namespace

bool Lowering::forward_detection_layer(int index) {
  const nn::Node& n = node(index);
  if (as<nn::TransposedConvolution>(n)) {
    spread(index);
  } else if (as<nn::Upsample>(n)) {
    const nn::Shape in = shapes_[at(n.inputs[0])], out = n.output;
    const TensorId x = value(n.inputs[0]), y = new_value(index, out);
    add(index, ".forward", {x, y}, [=]<typename T>(T, const Binding& b, auto& emit) {
      emit(EnlargePixels<T>{b.tensor<T>(x), b.tensor<T>(y), b.n, in.c, nearest(in.h, out.h), nearest(in.w, out.w)});
    });
  } else if (as<nn::Pyramid>(n)) {
    join_levels(index);
  } else if (const auto* levels = as<nn::KeepLevels>(n)) {
    keep_level_pixels(index, ".forward", levels->levels, value(n.inputs[0]), new_value(index, n.output));
  } else if (const auto* regions = as<nn::KeepRegions>(n)) {
    keep_region_pixels(index, ".forward", regions->size, value(n.inputs[0]), new_value(index, n.output));
  } else {
    return forward_region_layer(index);
  }
  return true;
}

bool Lowering::backward_detection_layer(int index, TensorId dy) {
  const nn::Node& n = node(index);
  if (as<nn::TransposedConvolution>(n)) return backward_spread(index, dy), true;
  if (as<nn::Pyramid>(n)) return backward_pyramid(index, dy), true;
  const auto* const align = as<nn::RegionAlign>(n);
  const auto* const levels = as<nn::KeepLevels>(n);
  const auto* const regions = as<nn::KeepRegions>(n);
  if (!as<nn::Upsample>(n) && !align && !levels && !regions) return false;
  const int source = n.inputs[0];
  if (!wants_gradient(source)) return true;
  if (align) return backward_align_regions(index, *align, dy), true;
  const TensorId dx = gradient_tensor(source);
  if (levels) {
    keep_level_pixels(index, ".gradient", levels->levels, dy, dx);
  } else if (regions) {
    keep_region_pixels(index, ".gradient", regions->size, dy, dx);
  } else {
    const nn::Shape in = shapes_[at(source)], out = n.output;
    add(index, ".gradient", {dy, dx}, [=]<typename T>(T, const Binding& b, auto& emit) {
      emit(EnlargePixelsGradient<T>{b.tensor<T>(dy), b.tensor<T>(dx), b.n, in.c, nearest(in.h, out.h),
                                    nearest(in.w, out.w)});
    });
  }
  pass_on(source, dx);
  return true;
}

void Lowering::keep_level_pixels(int index, const char* part, const nn::Levels& levels, TensorId x, TensorId y) {
  add(index, part, {x, y}, [=, c = node(index).output.c]<typename T>(T, const Binding& b, auto& emit) {
    emit(KeepLevelPixels<T>{b.tensor<T>(x), b.tensor<T>(y), b.n, c, level_grid(levels)});
  });
}

void Lowering::keep_region_pixels(int index, const char* part, int side, TensorId x, TensorId y) {
  add(index, part, {x, y}, [=, shape = node(index).output]<typename T>(T, const Binding& b, auto& emit) {
    emit(KeepRegionPixels<T>{b.tensor<T>(x), b.tensor<T>(y), b.n, shape.c, shape.h, shape.w, side});
  });
}

void Lowering::join_levels(int index) {
  const nn::Node& n = node(index);
  const TensorId y = new_value(index, n.output);
  std::vector<TensorId> levels;
  for (const int input : n.inputs) levels.push_back(value(input));
  std::vector<TensorId> touches = levels;
  touches.push_back(y);
  add(index, ".forward", touches,
      [=, c = n.output.c, of = levels_of(graph_, n)]<typename T>(T, const Binding& b, auto& emit) {
        JoinLevels<T> join{{}, b.tensor<T>(y), b.n, c, level_grid(of)};
        for (std::size_t level = 0; level < levels.size(); ++level) join.levels[level] = b.tensor<T>(levels[level]);
        emit(join);
      });
}

void Lowering::backward_pyramid(int index, TensorId dy) {
  const nn::Node& n = node(index);
  const std::vector<nn::LevelPlace> places = nn::level_places(levels_of(graph_, n));
  for (std::size_t level = 0; level < places.size(); ++level) {
    const int source = n.inputs[level];
    if (!wants_gradient(source)) continue;
    const TensorId dx = gradient_tensor(source);
    add(index, ".gradient", {dy, dx},
        [=, whole = n.output, place = places[level]]<typename T>(T, const Binding& b, auto& emit) {
          emit(TakeLevel<T>{b.tensor<T>(dy), b.tensor<T>(dx), b.n, whole.c, whole.h, whole.w, place});
        });
    pass_on(source, dx);
  }
}

void Lowering::spread(int index) {
  const TensorId x = value(node(index).inputs[0]), y = new_value(index, node(index).output);
  add(index, ".forward", {x, y},
      [=, &m = model_, size = node(index).output.size()]<typename T>(T, const Binding& b, auto& emit) {
        Convolution work = m.convolution(b, index, Direction::backward_data);
        work.a = b.tensor<T>(x);
        work.b = m.weight_in<T>(b.weights, index);
        work.result = b.tensor<T>(y);
        emit(work);
        emit(AddBias<T>{b.tensor<T>(y), late_bias(m, b, index), b.n * size});
      });
}

void Lowering::backward_spread(int index, TensorId dy) {
  const int source = node(index).inputs[0];
  if (!nn::is_held(node(index), 1)) bias_gradient(index, dy);
  if (!nn::is_held(node(index), 0)) weight_gradient_of(index, dy, value(source), {});
  if (!wants_gradient(source)) return;
  const TensorId dx = gradient_tensor(source);
  add(index, ".backward_data", {dy, dx}, [=, &m = model_]<typename T>(T, const Binding& b, auto& emit) {
    Convolution work = m.convolution(b, index, Direction::forward);
    work.a = b.tensor<T>(dy);
    work.b = m.weight_in<T>(b.weights, index);
    work.result = b.tensor<T>(dx);
    emit(work);
  });
  pass_on(source, dx);
}

}  // namespace dtrain::backend::cuda
