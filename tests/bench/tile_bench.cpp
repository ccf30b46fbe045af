// 3x3 convolutions in bfloat16 on one thread, by oneDNN and by own AMX kernels in turn, whichever of them a layer would
// take: ms of a direction, the best of nine medians, and how many times as long oneDNN takes. Nothing is compared,
// nothing can fail. usage: dtrain_tile_bench
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include <dtrain/nn/graph.hpp>

#include "backend/cpu/bfloat16.hpp"
#include "backend/cpu/products/product_layer.hpp"
#include "backend/cpu/products/product_ops.hpp"
#include "backend/cpu/products/tile_convolution_op.hpp"
#include "backend/cpu/products/tile_gradient_op.hpp"

namespace {

using namespace dtrain::backend;
using namespace dtrain::backend::cpu;

struct Shape {
  int samples, side, in, out, stride;
};

// Of ResNets on CIFAR's pictures and on 224 pixels.
constexpr Shape kShapes[] = {{2, 32, 64, 64, 1},   {4, 16, 128, 128, 1}, {16, 8, 256, 256, 1}, {2, 56, 64, 64, 1},
                             {2, 28, 128, 128, 1}, {4, 14, 256, 256, 1}, {8, 7, 512, 512, 1},  {2, 32, 64, 128, 2},
                             {8, 16, 128, 256, 2}, {1, 56, 128, 128, 2}, {4, 28, 256, 256, 2}, {8, 14, 512, 512, 2}};

Product product_of(const Shape& shape) {
  const int side = (shape.side - 1) / shape.stride + 1;
  Product p;
  p.in = {shape.in, shape.side, shape.side};
  p.out = {shape.out, side, side};
  p.convolution = {.out = shape.out, .kernel_h = 3, .kernel_w = 3, .pad_h = 1, .pad_w = 1};
  p.convolution.stride_h = p.convolution.stride_w = shape.stride;
  p.dtype = p.out_dtype = DType::bfloat16;
  return p;
}

using Make = std::function<std::unique_ptr<Op>(ProductLayer&)>;

double milliseconds(Op& op, int samples) {
  Worker worker;
  worker.stream = dnnl::stream(cpu_engine());
  worker.scratchpad.grow(op.scratchpad_bytes());
  return 1e3 * op.bare_seconds(worker, samples, 5);
}

void measure(const Shape& shape, const char* direction, const Make& library, const Make& own) {
  const std::vector<float> weights(static_cast<std::size_t>(9 * shape.in * shape.out), 0.01f);
  ProductLayer library_layer(product_of(shape), 0, -1), own_layer(product_of(shape), 0, -1);
  const std::unique_ptr<Op> by_library = library(library_layer), by_own = own(own_layer);
  dnnl::stream stream(cpu_engine());
  for (Op* op : {by_library.get(), by_own.get()}) op->prepare(shape.samples, 1);
  for (ProductLayer* layer : {&library_layer, &own_layer}) {
    for (const Direction each : {Direction::forward, Direction::backward}) layer->pack(each, weights.data(), stream);
  }
  double best_library = 1e9, best_own = 1e9;
  for (int round = 0; round < 9; ++round) {
    best_library = std::min(best_library, milliseconds(*by_library, shape.samples));
    best_own = std::min(best_own, milliseconds(*by_own, shape.samples));
  }
  fmt::print("{:18} {:38} oneDNN {:8.3f}  own {:8.3f}  {:5.2f}\n", direction, by_own->shape_name(shape.samples),
             best_library, best_own, best_library / best_own);
}

}  // namespace

int main() {
  if (!this_cpu().has_amx_bf16 || !this_cpu().has_avx512_bf16) {
    fmt::print("this CPU lacks AMX\n");
    return 0;
  }
  const SingleThreaded single;
  for (const Shape& shape : kShapes) {
    measure(
        shape, "forward", [](ProductLayer& layer) { return make_product_forward(layer, 0, 1); },
        [](ProductLayer& layer) { return make_tile_convolution(layer, Direction::forward, 0, 1); });
    measure(
        shape, "by the source", [](ProductLayer& layer) { return make_product_backward_data(layer, 0, 1); },
        [](ProductLayer& layer) { return make_tile_convolution(layer, Direction::backward, 0, 1); });
    measure(
        shape, "by the weights", [](ProductLayer& layer) { return make_product_backward_weights(layer, 0, 1); },
        [](ProductLayer& layer) { return make_tile_gradient(layer, 0, 1); });
  }
}
