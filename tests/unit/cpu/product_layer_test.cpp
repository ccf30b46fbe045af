// The layouts of weights that serve all numbers of samples.
#include "products/product_layer.hpp"

#include <gtest/gtest.h>

#include <string>

namespace dtrain::backend::cpu {
namespace {

std::string implementation(const Compiled& compiled) {
  const char* name = nullptr;
  const_dnnl_primitive_desc_t description = nullptr;
  EXPECT_EQ(dnnl_primitive_get_primitive_desc(compiled.primitive.get(), &description), dnnl_success);
  EXPECT_EQ(dnnl_primitive_desc_query(description, dnnl_query_impl_info_str, 0, static_cast<void*>(&name)),
            dnnl_success);
  return name;
}

// Of a convolution whose result has the size height x width.
Product product(int kernel, int in, int out, int stride, int height, int width) {
  Product p;
  p.in = {in, height * stride, width * stride};
  p.out = {out, height, width};
  p.convolution = {.out = out,
                   .kernel_h = kernel,
                   .kernel_w = kernel,
                   .stride_h = stride,
                   .stride_w = stride,
                   .pad_h = kernel / 2,
                   .pad_w = kernel / 2};
  return p;
}

// For these oneDNN 2.6 with AVX-512 prefers other blocks of weights for one sample than for eight.
TEST(ProductLayers, HaveWeightsThatNoNumberOfSamplesReadsByDefinition) {
  const SingleThreaded alone;
  for (const Product& p :
       {product(1, 256, 512, 2, 7, 10), product(1, 256, 512, 2, 10, 10), product(1, 256, 1024, 2, 14, 10),
        product(3, 96, 64, 1, 4, 7), product(3, 128, 64, 1, 7, 7), product(3, 256, 64, 1, 4, 7)}) {
    ProductLayer layer(p, 0, -1);
    for (const int samples : {1, 2, 3, 4, 8, 32}) {
      const std::string name = implementation(layer.forward(samples));
      EXPECT_FALSE(name.starts_with("ref")) << layer.shape_name(samples) << " by " << name;
    }
  }
}

}  // namespace
}  // namespace dtrain::backend::cpu
