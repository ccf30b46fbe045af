// What cuDNN itself says of our convolutions on GPUs that are not here: skipped where there is no cuDNN, and neither a
// driver nor NVIDIA's stub of it to make helpers/cuda_driver.cpp from.
#include "described_gpu.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <set>

#include <dtrain/backend/cuda.hpp>
#include <dtrain/nn/networks.hpp>

#include "first_layer.hpp"
#include "training_calls.hpp"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

namespace dtrain::backend::cuda {
namespace {

constexpr EngineRules kRules{.most_workspace = std::uint64_t{1} << 30};

// An H100 with 80 GB; an H200 differs in its memory only.
const char* const kHopper = R"({"deviceName": "NVIDIA H100 80GB HBM3", "deviceVer": 900, "driverVer": 13000,
  "cudaDeviceId": 0, "pciDeviceId": 0, "isTccDriver": 0, "supportCoopLaunch": 1, "multiProcessorCount": 132,
  "smClockRateKHz": 1980000, "memClockRateKHz": 2619000, "l2CacheSize": 52428800, "totalGlobalMem": 85024112640,
  "warpSize": 32, "regsPerBlock": 65536, "maxRegistersPerSM": 65536, "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024,
  "maxThreadsPerSM": 2048, "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448,
  "reservedSharedMemoryPerBlock": 1024, "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64]})";

// From then on, cuDNN finds it by its name.
bool load_driver() {
  if (::dlopen("libcuda.so.1", RTLD_NOW)) return true;
#ifdef DTRAIN_DRIVER_STANDIN
  return ::dlopen(DTRAIN_DRIVER_STANDIN, RTLD_NOW) != nullptr;
#else
  return false;
#endif
}

class CudaDescribedGpu : public ::testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    if (!load_driver()) GTEST_SKIP() << "there is no driver here, and no stub of it";
    const CudaReport report = look_for_cuda();
    if (report.libraries.empty() || report.libraries.front().file.empty()) GTEST_SKIP() << "there is no cuDNN here";
    const CudaLibrary& cudnn = report.libraries.front();
    int major = 0, minor = 0;
    std::sscanf(cudnn.version.c_str(), "%d.%d", &major, &minor);
    if (major == 9 && minor < 8) GTEST_SKIP() << "cuDNN " << cudnn.version << " knows only GPUs that are here";
    gpu_ = describe_gpu(cudnn.file, kHopper);
  }
#ifdef __SANITIZE_ADDRESS__
  const __lsan::ScopedDisabler libraries_keep_what_they_made_;
#endif
  std::unique_ptr<DescribedGpu> gpu_;
};

INSTANTIATE_TEST_SUITE_P(All, CudaDescribedGpu, ::testing::Values(DType::float32, DType::bfloat16, DType::float16),
                         [](const auto& of) { return dtype_name(of.param); });

// Each once.
std::vector<Convolution> convolutions_among(const std::vector<Call>& calls) {
  std::vector<Convolution> found;
  for (const Call& call : calls) {
    const auto* const work = call.work.get_if<Convolution>();
    const auto same = [&](const Convolution& other) {
      return other.direction == work->direction && other.shape == work->shape;
    };
    if (work && std::ranges::none_of(found, same)) found.push_back(*work);
  }
  return found;
}

std::vector<Convolution> convolutions_of(const nn::NetworkOptions& options, DType dtype, int n) {
  return convolutions_among(training_calls(nn::build_network(options), dtype, n));
}

std::string text_of(const Convolution& work) {
  const ConvolutionShape& s = work.shape;
  return fmt::format("direction {}, {}x{}x{}x{} to {}x{}x{}, kernel {}x{}, stride {}, padding {}, {} groups",
                     static_cast<int>(work.direction), s.n, s.in, s.in_h, s.in_w, s.out, s.out_h, s.out_w, s.kernel_h,
                     s.kernel_w, s.stride_h, s.pad_h, s.groups);
}

const std::vector<nn::NetworkOptions>& networks() {
  static const std::vector<nn::NetworkOptions> all{
      {.name = "resnet-v1", .num_layers = 50, .image = {3, 224, 224}, .classes = 1000},
      {.name = "resnet-v1", .num_layers = 18, .image = {3, 224, 224}, .classes = 1000},
      {.name = "resnet", .num_layers = 20, .image = {3, 32, 32}, .classes = 10},
      {.name = "lenet", .image = {1, 28, 28}, .classes = 10}};
  return all;
}

TEST_P(CudaDescribedGpu, HasAPlanForEveryConvolutionOfOurNetworks) {
  for (const nn::NetworkOptions& network : networks()) {
    for (const int n : {256, 13}) {  // a step and the last, smaller one
      for (const Convolution& work : convolutions_of(network, GetParam(), n)) {
        const auto choice = gpu_->choice(work, kRules, {});
        ASSERT_TRUE(choice) << network.name << network.num_layers << ": " << text_of(work);
        EXPECT_TRUE(may_compute(choice->engine, GetParam(), kRules)) << choice->engine.name;
        EXPECT_LE(choice->workspace, kRules.most_workspace) << choice->engine.name;
        // One gradient of LeNet's single channel is computed by an engine that is made at run time.
        if (network.name != "lenet") {
          EXPECT_FALSE(needs_proof(choice->engine, work, kRules)) << choice->engine.name << ": " << text_of(work);
        }
      }
    }
  }
}

// Prints what tests/bench/roofline.md says of the first convolution: for the image as it is, some of cuDNN's plans fill
// three channels up to eight, in memory that they ask for, and others do without tensor cores.
TEST_P(CudaDescribedGpu, ComputesAFirstConvolutionOnBlocksOfPixelsInLessMemory) {
  constexpr std::uint64_t kMebibyte = 1 << 20;
  for (const auto& [kernel, out] : {std::pair{7, 64}, {3, 32}}) {  // ResNet's and MobileNet's
    const std::int32_t pad = kernel / 2;
    const ConvolutionShape plain{256, 3, 224, 224, out, 112, 112, kernel, kernel, 2, 2, pad, pad, 1};
    const PixelBlocks blocks = *pixel_blocks(plain, DType::bfloat16);
    for (const Direction direction : {Direction::forward, Direction::backward_weights}) {
      Convolution work{.direction = direction, .shape = plain, .dtype = GetParam(), .any_order = true};
      const auto before = gpu_->choice(work, kRules, {});
      work.shape = shape_on_blocks(plain, blocks);
      const auto after = gpu_->choice(work, kRules, {});
      ASSERT_TRUE(before && after) << text_of(work);
      EXPECT_TRUE(after->engine.same_bits && !needs_proof(after->engine, work, kRules)) << after->engine.name;
      const auto words = [](const DescribedGpu::Choice& choice) {
        return fmt::format("{} MiB by engine {}{}", choice.workspace / kMebibyte, choice.engine.name,
                           choice.engine.tensor_cores ? " on tensor cores" : "");
      };
      fmt::print("{} {}x{} {}: {}; on blocks {}\n", dtype_name(GetParam()), kernel, kernel, direction_name(direction),
                 words(*before), words(*after));
      if (GetParam() == DType::float32) continue;
      EXPECT_LE(after->workspace, 2 * kMebibyte) << text_of(work);
      EXPECT_TRUE(after->engine.tensor_cores) << after->engine.name;
    }
  }
}

Convolution block(DType dtype, Direction direction) {
  return {.direction = direction,
          .shape = {256, 64, 56, 56, 64, 56, 56, 3, 3, 1, 1, 1, 1, 1},
          .dtype = dtype,
          .any_order = true};
}

// So that the rules are about something: cuDNN offers what they refuse.
TEST_P(CudaDescribedGpu, IsOfferedEnginesThatGiveOtherBitsAndTakesNone) {
  for (const Direction direction : {Direction::backward_data, Direction::backward_weights}) {
    const std::vector<EngineFacts> engines = gpu_->engines(block(GetParam(), direction));
    EXPECT_TRUE(std::ranges::any_of(engines, [](const EngineFacts& engine) { return !engine.same_bits; }));
  }
}

// Else only the first of an engine's settings would ever be timed.
TEST_P(CudaDescribedGpu, NamesEnginesWithTheirSettings) {
  for (const Direction direction : {Direction::forward, Direction::backward_data, Direction::backward_weights}) {
    std::set<std::string> names, numbers;
    for (const EngineFacts& engine : gpu_->engines(block(GetParam(), direction))) {
      names.insert(engine.name);
      numbers.insert(engine.name.substr(0, engine.name.find(':')));
    }
    EXPECT_GT(names.size(), numbers.size()) << direction_name(direction);
  }
}

// Without a driver beside it cuDNN would name the kernels alone that it ships, and these tests would be about less than
// a GPU is offered.
TEST_P(CudaDescribedGpu, IsOfferedEnginesThatAreMadeAtRunTime) {
  const std::vector<EngineFacts> engines = gpu_->engines(block(GetParam(), Direction::forward));
  EXPECT_TRUE(std::ranges::any_of(engines, &EngineFacts::made_at_run_time));
}

// What is gained by other bits: in float32 cuDNN puts such engines before the others that do not round. In half types
// theirs add in less than float32.
TEST_P(CudaDescribedGpu, TakesEnginesThatGiveOtherBitsWhereItMayAndTheyAddInFloat32) {
  const EngineRules any{.deterministic = false, .most_workspace = kRules.most_workspace};
  for (const Direction direction : {Direction::backward_data, Direction::backward_weights}) {
    for (const EngineFacts& engine : gpu_->engines(block(GetParam(), direction))) {
      EXPECT_EQ(may_compute(engine, GetParam(), any) && !engine.same_bits,
                GetParam() == DType::float32 && !engine.same_bits)
          << engine.name;
    }
  }
  Convolution work = block(GetParam(), Direction::backward_weights);
  EXPECT_EQ(gpu_->choice(work, any, {})->engine.same_bits, GetParam() != DType::float32);
  work.any_order = false;
  EXPECT_TRUE(gpu_->choice(work, any, {})->engine.same_bits);
}

// Prints how much of a step --deterministic off would change: tests/bench/README.md has the figures.
TEST_P(CudaDescribedGpu, TakesAnotherEngineOnlyForOtherBits) {
  for (const bool tf32 : {false, true}) {
    const EngineRules same{.tf32 = tf32, .most_workspace = kRules.most_workspace};
    const EngineRules any{.tf32 = tf32, .deterministic = false, .most_workspace = kRules.most_workspace};
    const std::vector<Convolution> all = convolutions_of(networks().front(), GetParam(), 256);
    int others = 0;
    for (const Convolution& work : all) {
      const auto mine = gpu_->choice(work, same, {}), other = gpu_->choice(work, any, {});
      ASSERT_TRUE(mine && other) << text_of(work);
      if (other->engine.name == mine->engine.name) continue;
      EXPECT_FALSE(other->engine.same_bits) << text_of(work);
      ++others;
    }
    fmt::print("{}{}: another engine for {} of {} shapes\n", dtype_name(GetParam()), tf32 ? " with tf32" : "", others,
               all.size());
    if (GetParam() != DType::float32) break;
  }
}

TEST_P(CudaDescribedGpu, IsOfferedTensorCoresAndTakesThemUnlessTheyRound) {
  for (const Direction direction : {Direction::forward, Direction::backward_data, Direction::backward_weights}) {
    const Convolution work = block(GetParam(), direction);
    EXPECT_TRUE(gpu_->engines(work).front().tensor_cores);
    EXPECT_EQ(gpu_->choice(work, kRules, {})->engine.tensor_cores, GetParam() != DType::float32);
    const EngineRules rounding{.tf32 = true, .most_workspace = kRules.most_workspace};
    EXPECT_TRUE(gpu_->choice(work, rounding, {})->engine.tensor_cores);
  }
}

TEST_P(CudaDescribedGpu, TakesNoMoreMemoryThanItMay) {
  for (const Convolution& work : convolutions_of(networks().front(), GetParam(), 256)) {
    const auto choice = gpu_->choice(work, {}, {});
    EXPECT_TRUE(!choice || choice->workspace == 0) << text_of(work);
  }
}

TEST_P(CudaDescribedGpu, TakesTheEngineThatWasKeptUnlessItMayNotCompute) {
  const Convolution work = block(GetParam(), Direction::backward_weights);
  const std::vector<EngineFacts> engines = gpu_->engines(work);
  const std::string first = gpu_->choice(work, kRules, {})->engine.name;
  const auto other = std::ranges::find_if(engines, [&](const EngineFacts& engine) {
    return engine.name != first && may_compute(engine, GetParam(), kRules);
  });
  const auto refused = std::ranges::find_if(engines, [](const EngineFacts& engine) { return !engine.same_bits; });
  ASSERT_TRUE(other != engines.end() && refused != engines.end());
  EXPECT_EQ(gpu_->choice(work, kRules, other->name)->engine.name, other->name);
  EXPECT_EQ(gpu_->choice(work, kRules, refused->name)->engine.name, first);
  EXPECT_EQ(gpu_->choice(work, kRules, "no engine")->engine.name, first);
}

// What cuDNN ships leaves moments in float16 only. In bfloat16 it would make a kernel that adds them by atomic
// operations, and does not note that the bits differ: it is not asked (asks_cudnn()).
TEST_P(CudaDescribedGpu, LeavesMomentsByWhatItShipsInFloat16Only) {
  float moments[2 * 64];
  Convolution work = block(GetParam(), Direction::forward);
  work.moments = moments;
  const auto choice = gpu_->choice(work, kRules, {});
  ASSERT_EQ(choice.has_value(), GetParam() == DType::float16);
  if (!choice) return;
  EXPECT_TRUE(choice->engine.same_bits) << "as cuDNN notes it";
  EXPECT_FALSE(needs_proof(choice->engine, work, kRules)) << choice->engine.name;
}

// What a norm makes for one convolution alone need not be written where both directions that read it have a plan, the
// forward one with its moments. In bfloat16 cuDNN has one for forward alone, made at run time: it is not asked.
TEST_P(CudaDescribedGpu, ComputesWhatItReadsOfANormByWhatItShipsInFloat16Only) {
  std::vector<float> moments(2 * 2048);
  int asked = 0;
  for (Convolution work : convolutions_of(networks().front(), GetParam(), 256)) {
    if (!work.normed.x) continue;
    work.normed.fused = true;
    const bool forward = work.direction == Direction::forward;
    if (forward) work.moments = moments.data();
    const auto choice = gpu_->choice(work, kRules, {});
    EXPECT_EQ(choice.has_value(), GetParam() == DType::float16) << text_of(work);
    if (choice) {
      EXPECT_FALSE(needs_proof(choice->engine, work, kRules)) << text_of(work);
    }
    ++asked;
  }
  EXPECT_EQ(asked, 16);
}

TEST_P(CudaDescribedGpu, LeavesTheMomentsOfWhatMayLeaveThem) {
  std::vector<float> moments(2 * 2048);
  for (Convolution work : convolutions_of(networks().front(), GetParam(), 256)) {
    if (work.direction != Direction::forward || work.shape.out_h == 1 || !may_fuse(work)) continue;
    work.moments = moments.data();
    const auto choice = gpu_->choice(work, kRules, {});
    EXPECT_TRUE(choice && choice->engine.same_bits && !needs_proof(choice->engine, work, kRules)) << text_of(work);
  }
}

}  // namespace
}  // namespace dtrain::backend::cuda
