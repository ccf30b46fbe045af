// Layers that backends on the host have alone: uneven padding and local response norms.
#include "layer_cases.hpp"

namespace dtrain::testing {
namespace {

using nn::Activation;
using nn::Convolution;
using nn::GraphBuilder;
using nn::LocalResponseNorm;

Convolution padded_unevenly(Convolution layer, int extra_h, int extra_w) {
  layer.extra_h = extra_h;
  layer.extra_w = extra_w;
  return layer;
}

void add_uneven_padding(std::vector<Problem>& cases) {
  cases.push_back(single("uneven_behind", padded_unevenly(square(5, 3, 2, 0), 1, 1)));
  cases.push_back(single("uneven_both_ways", padded_unevenly(square(5, 3, 1, 1), -1, 2)));
  cases.push_back(single("uneven_1x1_stride_2", padded_unevenly(square(8, 1, 2, 0), 1, 2)));
  Convolution depthwise = padded_unevenly(square(6, 5, 1, 1), 2, 1);
  depthwise.groups = 6;
  cases.push_back(single("uneven_depthwise", depthwise));
  Convolution dilated = padded_unevenly(square(4, 3, 1, 1), 2, 0);
  dilated.dilation_h = dilated.dilation_w = 2;
  dilated.bias = true;
  cases.push_back(single("uneven_dilated", dilated));
  // As many channels and pixels as own kernels want.
  cases.push_back(wrap("uneven_wide",
                       [](GraphBuilder& b, int x) {
                         x = b.add("wide", square(32, 1, 1, 0), {x});
                         return b.add("middle", padded_unevenly(square(32, 3, 1, 1), 1, 1), {x});
                       },
                       0, {3, 12, 12}));
}

void add_local_response_norms(std::vector<Problem>& cases) {
  cases.push_back(single("local_response_norm", LocalResponseNorm{.alpha = 0.5f, .bias = 2, .size = 3}));
  cases.push_back(single("local_response_norm_of_all", LocalResponseNorm{.alpha = 2, .beta = 0.6f, .size = 15}));
  // As AlexNet has them.
  cases.push_back(wrap("local_response_norm_pooled", [](GraphBuilder& b, int x) {
    x = b.add("relu", Activation{}, {b.add("wide", square(19, 3, 1, 1), {x})});
    x = b.add("norm", LocalResponseNorm{.alpha = 0.3f}, {x});
    return b.add("next", square(5, 3, 1, 1), {b.add("pool", window(nn::PoolingKind::max, 3, 2, 0), {x})});
  }));
}

}  // namespace

std::vector<Problem> host_problems() {
  std::vector<Problem> cases;
  add_uneven_padding(cases);
  add_local_response_norms(cases);
  return cases;
}

}  // namespace dtrain::testing
