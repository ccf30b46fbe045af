// dtrain's own products of matrices on a Hopper GPU (src/backend/cuda/gpu/native/product.hpp), for the 1x1 convolutions
// of ResNet-50 and others: that they agree with the definition and with cuDNN, and what both take.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <dtrain/backend/cuda.hpp>
#include <dtrain/base/error.hpp>

#include "backend/cuda/gpu/gpu_device.hpp"
#include "backend/cuda/gpu/native/product.hpp"
#include "backend/cuda/plans/plan_proof.hpp"

namespace dtrain::testing {
namespace {

using namespace backend::cuda;
using backend::DType;

constexpr Direction kDirections[] = {Direction::forward, Direction::backward_data, Direction::backward_weights};

ConvolutionShape pointwise(std::int32_t n, std::int32_t size, std::int32_t in, std::int32_t out) {
  return {n, in, size, size, out, size, size, 1, 1, 1, 1, 0, 0, 1};
}

// Shapes of ResNet-50, stride 1; the last one is its classifier.
std::vector<ConvolutionShape> resnet50(std::int32_t n) {
  return {pointwise(n, 56, 64, 64),    pointwise(n, 56, 64, 256),  pointwise(n, 56, 256, 64),
          pointwise(n, 28, 128, 512),  pointwise(n, 28, 512, 128), pointwise(n, 14, 256, 1024),
          pointwise(n, 14, 1024, 256), pointwise(n, 7, 512, 2048), pointwise(n, 7, 2048, 512),
          pointwise(n, 1, 2048, 1000)};
}

// What fills no tile, and what is not much more than one.
std::vector<ConvolutionShape> odd() {
  return {pointwise(1, 1, 8, 8),      pointwise(3, 5, 24, 72),   pointwise(2, 8, 64, 136),
          pointwise(5, 11, 200, 264), pointwise(1, 31, 1000, 8), pointwise(2, 9, 320, 1000)};
}

class GpuProducts : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* const named = std::getenv("DTRAIN_TEST_GPU");
    if (named && std::string(named) == "replay") GTEST_SKIP() << "there is no GPU here";
    const backend::CudaReport report = backend::look_for_cuda();
    if (!report.problem.empty()) throw UsageError(report.problem, report.hint);
    gpu_ = named ? std::atoi(named) : 0;
    cudnn_ = report.libraries.front().file;
    device_ = open(backend::OwnProducts::first);
    if (!multiplies_by_wgmma()) GTEST_SKIP() << "this GPU has no wgmma";
  }
  std::shared_ptr<Device> open(backend::OwnProducts own) const {
    return open_gpu(gpu_, cudnn_, {.own_products = own, .plans = {}}, {});
  }

  int gpu_ = 0;
  std::string cudnn_;
  std::shared_ptr<Device> device_;
};

std::string name_of(const Convolution& work) { return work_key(work, {}); }

// Memory of the work, with random inputs.
class Operands {
 public:
  Operands(Device& device, const Convolution& work)
      : layout_(work), memory_(device, layout_.bytes() + layout_.results_bytes()), sums_(device, sums_of(work)) {
    const std::vector<std::byte> pattern = layout_.pattern();
    for (std::uint64_t at = 0; at < layout_.results_begin(); at += pattern.size()) {
      device.upload(memory_.data() + at, pattern.data(),
                    std::min<std::uint64_t>(pattern.size(), layout_.results_begin() - at));
    }
  }
  Convolution work(bool beside = false) const {
    Convolution work =
        layout_.at(memory_.data(), memory_.data() + (beside ? layout_.bytes() : layout_.results_begin()));
    work.sums = reinterpret_cast<float*>(sums_.data());
    return work;
  }
  std::int64_t values() const { return layout_.result_values(); }
  std::uint64_t result_bytes() const { return layout_.results_bytes(); }

 private:
  static std::uint64_t sums_of(const Convolution& work) {
    return static_cast<std::uint64_t>(cut_weight_rows(work.shape).parts * work.shape.weights()) * sizeof(float);
  }
  const ProofLayout layout_;
  const DeviceMemory memory_, sums_;
};

template <typename T>
std::vector<float> values_at(Device& device, const void* from, std::int64_t size) {
  std::vector<T> values(static_cast<std::size_t>(size));
  device.download(values.data(), from, values.size() * sizeof(T));
  std::vector<float> wide(values.size());
  std::ranges::transform(values, wide.begin(), [](T value) { return widen(value); });
  return wide;
}

// The definition adds one product after the other in float32.
TEST_F(GpuProducts, AgreeWithTheirDefinitionAtEveryEdge) {
  std::vector<ConvolutionShape> shapes = odd();
  for (const ConvolutionShape& shape : resnet50(2)) shapes.push_back(shape);
  for (const DType dtype : {DType::bfloat16, DType::float16}) {
    for (const Direction direction : kDirections) {
      for (const ConvolutionShape& shape : shapes) {
        const Convolution wanted{.direction = direction, .shape = shape, .dtype = dtype};
        const Operands operands(*device_, wanted);
        const ProductShape product = product_of(wanted).value();
        const DeviceMemory workspace(*device_, std::uint64_t{64} << 20);
        device_->record(definition_of({"defined", operands.work(true)}))->run();
        for (const std::int32_t n : {64, 128, 256}) {
          const ProductTile tile{n};
          ASSERT_LE(product_workspace(wanted, tile), workspace.size());
          device_->synchronize();
          // What the tile before left would hide values that this one does not write.
          ASSERT_EQ(cudaMemset(operands.work().result, 0xff, operands.result_bytes()), cudaSuccess);
          // Another stream than the device's, so that both sides wait.
          ASSERT_EQ(launch_product(operands.work(), tile, workspace.data(), nullptr), cudaSuccess) << name_of(wanted);
          ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess) << name_of(wanted) << " by " << engine_name(tile);
          with_type(dtype, [&]<typename T>(T) {
            const std::vector<float> own = values_at<T>(*device_, operands.work().result, operands.values()),
                                     defined = values_at<T>(*device_, operands.work(true).result, operands.values());
            const Tolerance tolerance = proof_tolerance(dtype, product.k);
            std::int64_t wrong = 0, first = -1;
            for (std::size_t at = 0; at < own.size(); ++at) {
              const float most =
                  tolerance.relative * std::max(std::abs(own[at]), std::abs(defined[at])) + tolerance.absolute;
              if (std::abs(own[at] - defined[at]) <= most) continue;
              if (wrong++ == 0) first = static_cast<std::int64_t>(at);
            }
            EXPECT_EQ(wrong, 0) << name_of(wanted) << " by " << engine_name(tile) << ": of " << own.size()
                                << " values, the first is value " << first % product.n << " of row "
                                << first / product.n << ": " << own[static_cast<std::size_t>(first)] << " instead of "
                                << defined[static_cast<std::size_t>(first)];
          });
        }
      }
    }
  }
}

// Same bits twice, cuDNN's numbers, and moments that are those of the result: see Cudnn::agrees_with_cudnn().
TEST_F(GpuProducts, PassTheirProofForEachConvolutionOfResNet50) {
  for (const DType dtype : {DType::bfloat16, DType::float16}) {
    for (const Direction direction : kDirections) {
      for (const ConvolutionShape& shape : resnet50(32)) {
        const Convolution wanted{.direction = direction, .shape = shape, .dtype = dtype};
        const Operands operands(*device_, wanted);
        const auto recording = device_->record({{"conv", operands.work()}});
        recording->run();
        device_->synchronize();
        const ConvolutionFacts facts = recording->facts().convolutions.at(0);
        EXPECT_TRUE(tile_of_engine(facts.engine))
            << name_of(wanted) << ": " << facts.engine << ", " << facts.own_refused;
        if (direction != Direction::forward) continue;
        Convolution with_moments = operands.work();
        float moments = 0;
        with_moments.moments = &moments;  // only asked about
        EXPECT_TRUE(device_->fuses(with_moments)) << name_of(with_moments);
      }
    }
  }
}

// No goal is checked: the lines are what run-gpu.sh keeps.
TEST_F(GpuProducts, TakeSoLongBesideCudnn) {
  constexpr int kTimes = 20;
  constexpr double kMicro = 1e6, kTera = 1e12;
  const std::shared_ptr<Device> cudnn = open(backend::OwnProducts::never);
  for (const Direction direction : kDirections) {
    for (const ConvolutionShape& shape : resnet50(256)) {
      const Convolution wanted{.direction = direction, .shape = shape, .dtype = DType::bfloat16};
      const Operands operands(*device_, wanted);
      device_->synchronize();
      const std::vector<Call> calls{{"conv", operands.work()}};
      const double own = device_->seconds_of(calls, kTimes), theirs = cudnn->seconds_of(calls, kTimes);
      const ProductShape product = product_of(wanted).value();
      const double operations = 2.0 * product.m * product.n * product.k;
      const double bytes = 2.0 * static_cast<double>(shape.inputs() + shape.outputs() + shape.weights());
      fmt::print("PRODUCT {} m {} n {} k {}: own {:.1f} us ({:.0f} TFLOP/s, {:.2f} TB/s), cuDNN {:.1f} us\n",
                 direction_name(direction), product.m, product.n, product.k, own * kMicro, operations / own / kTera,
                 bytes / own / kTera, theirs * kMicro);
    }
  }
}

}  // namespace
}  // namespace dtrain::testing
