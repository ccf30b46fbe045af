// 3x3 convolutions in bfloat16 on one thread, and a network's first one by its weights, by oneDNN and by own AMX
// kernels in turn, whichever of them a layer would take: ms of a direction, the best of nine medians, and how many
// times as long oneDNN takes. Nothing is compared, nothing can fail. usage: dtrain_tile_bench
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
#include "backend/cpu/products/tile_stem_op.hpp"

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

// ResNet's.
Product first_product() {
  Product p;
  p.in = {3, 224, 224};
  p.out = {64, 112, 112};
  p.convolution = {.out = 64, .kernel_h = 7, .kernel_w = 7, .stride_h = 2, .stride_w = 2, .pad_h = 3, .pad_w = 3};
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

void measure(const Product& product, int samples, const char* direction, const Make& library, const Make& own) {
  const std::vector<float> weights(product.plain_weights().get_size() / sizeof(float), 0.01f);
  ProductLayer library_layer(product, 0, -1), own_layer(product, 0, -1);
  const std::unique_ptr<Op> by_library = library(library_layer), by_own = own(own_layer);
  dnnl::stream stream(cpu_engine());
  for (Op* op : {by_library.get(), by_own.get()}) op->prepare(samples, 1);
  for (ProductLayer* layer : {&library_layer, &own_layer}) {
    for (const Direction each : {Direction::forward, Direction::backward}) layer->pack(each, weights.data(), stream);
  }
  double best_library = 1e9, best_own = 1e9;
  for (int round = 0; round < 9; ++round) {
    best_library = std::min(best_library, milliseconds(*by_library, samples));
    best_own = std::min(best_own, milliseconds(*by_own, samples));
  }
  fmt::print("{:18} {:38} oneDNN {:8.3f}  own {:8.3f}  {:5.2f}\n", direction, by_own->shape_name(samples), best_library,
             best_own, best_library / best_own);
}

}  // namespace

int main() {
  if (!this_cpu().has_amx_bf16 || !this_cpu().has_avx512_bf16) {
    fmt::print("this CPU lacks AMX\n");
    return 0;
  }
  const SingleThreaded single;
  for (const Shape& shape : kShapes) {
    const Product product = product_of(shape);
    measure(
        product, shape.samples, "forward", [](ProductLayer& layer) { return make_product_forward(layer, 0, 1); },
        [](ProductLayer& layer) { return make_tile_convolution(layer, Direction::forward, 0, 1); });
    measure(
        product, shape.samples, "by the source",
        [](ProductLayer& layer) { return make_product_backward_data(layer, 0, 1); },
        [](ProductLayer& layer) { return make_tile_convolution(layer, Direction::backward, 0, 1); });
    measure(
        product, shape.samples, "by the weights",
        [](ProductLayer& layer) { return make_product_backward_weights(layer, 0, 1); },
        [](ProductLayer& layer) { return make_tile_gradient(layer, 0, 1); });
  }
  measure(
      first_product(), 4, "by the weights",
      [](ProductLayer& layer) { return make_product_backward_weights(layer, 0, 1); },
      [](ProductLayer& layer) { return make_tile_stem(layer, 0, 1); });
}
